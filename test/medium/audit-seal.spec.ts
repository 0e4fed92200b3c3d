import pg from 'pg';
import { AuditPendingStore } from '../../src/audit/audit-pending.store.js';
import { newId, type OrgId } from '../../src/kernel/ids.js';
import { migrateDatabase } from '../../src/platform/database/migrate.js';
import { Pg } from '../../src/platform/database/pg.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

/** A connection on which the statement that begins the first transaction fails. */
class FailingClient extends pg.Client {
  private fails = true;

  override query(...given: any[]): any {
    const [text] = given as unknown[];
    const isBegin = this.fails && typeof text === 'string' && text.startsWith('begin');
    if (isBegin) this.fails = false;
    return (super.query as (...all: unknown[]) => unknown)(...(isBegin ? ['begin; select 1/0'] : given));
  }
}

describe('sealing of audit events', () => {
  let database: TestDatabase;
  let pool: pg.Pool;

  beforeAll(async () => {
    database = await createTestDatabase('audit_seal');
    await migrateDatabase(database.url);
    pool = new pg.Pool({ connectionString: database.url, max: 1, Client: FailingClient });
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  it('loses no event and keeps no lock when a transaction cannot begin', async () => {
    const [org, event] = [newId<OrgId>(), newId()];
    await pool.query(
      `with e as (
         insert into audit_events (id, org_id, at, type, event) values ($1, $2, now(), 'token.tenant_mismatch', '{}')
       )
       insert into audit_pending (event_id, org_id) values ($1, $2)`,
      [event, org],
    );
    const store = new AuditPendingStore(new Pg(pool));
    await expect(store.sealOrg(org, true)).rejects.toThrow('division by zero');
    const locks = `select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`;
    expect((await pool.query(locks)).rows).toEqual([{ count: 0 }]);
    expect(await store.waiting()).toMatchObject({ count: 1 });
    expect(await store.sealOrg(org, true)).toBe(1);
    expect((await pool.query('select sequence::int, event_id from audit_chain')).rows).toEqual([
      { sequence: 1, event_id: event },
    ]);
  });
});
