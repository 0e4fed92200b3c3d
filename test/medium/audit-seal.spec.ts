import pg from 'pg';
import { AuditPendingStore } from '../../src/audit/sealing/audit-pending.store.js';
import { AuditEventStore } from '../../src/audit/audit-event.store.js';
import { genesisHash, walkChain } from '../../src/audit/chain.js';
import { sealWaiting } from '../../src/audit/sealing/seal.js';
import { SealThread } from '../../src/audit/sealing/seal-thread.js';
import { newId, type OrgId } from '../../src/kernel/ids.js';
import { migrateDatabase } from '../../src/platform/database/migrate.js';
import { Pg } from '../../src/platform/database/pg.js';
import { eventually } from '../support/gateway/eventually.js';
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

  const record = async (org: OrgId): Promise<string> => {
    const event = newId();
    await pool.query(
      `with e as (
         insert into audit_events (id, org_id, at, type, event)
         values ($1, $2, date_trunc('milliseconds', now()), 'token.tenant_mismatch', '{}')
       )
       insert into audit_pending (event_id, org_id) values ($1, $2)`,
      [event, org],
    );
    return event;
  };

  it('loses no event and keeps no lock when a transaction cannot begin', async () => {
    const org = newId<OrgId>();
    const event = await record(org);
    const store = new AuditPendingStore(new Pg(pool));
    await expect(sealWaiting(new Pg(pool), org, true)).rejects.toThrow('division by zero');
    const locks = `select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`;
    expect((await pool.query(locks)).rows).toEqual([{ count: 0 }]);
    expect(await store.waiting()).toMatchObject({ count: 1 });
    expect(await sealWaiting(new Pg(pool), org, true)).toBe(1);
    expect((await pool.query('select sequence::int, event_id from audit_chain')).rows).toEqual([
      { sequence: 1, event_id: event },
    ]);
  });

  it('is the same in a thread, which loses no event when it ends', async () => {
    const thread = new SealThread(database.url);
    const holder = new pg.Client({ connectionString: database.url });
    await holder.connect();
    try {
      const org = newId<OrgId>();
      for (let count = 0; count < 2; count++) await record(org);
      expect([await thread.seal(org, true), await thread.seal(org, true)]).toEqual([2, 0]);
      await record(org);
      await holder.query(`select pg_advisory_lock(hashtextextended('audit:' || $1::text, 0))`, [org]);
      expect(await thread.seal(org, false)).toBe(0);
      const waiting = thread.seal(org, true);
      const waits = `select from pg_locks where locktype = 'advisory' and not granted`;
      await eventually(
        async () => (await pool.query(waits)).rowCount,
        (count) => count === 1,
      );
      await thread.stop();
      expect(await waiting).toBeUndefined();
      await holder.query('select pg_advisory_unlock_all()');
      expect(await thread.seal(org, true)).toBe(1);
      const links = await new AuditEventStore(new Pg(pool)).linksAfter(org, 0, 10);
      expect(walkChain(links, { sequence: 0, hash: genesisHash })).toMatchObject({ sequence: 3 });
    } finally {
      await holder.end();
      await thread.stop();
    }
  });

  it('is refused by a thread without a database', async () => {
    const thread = new SealThread('postgres://127.0.0.1:1/none');
    expect(await thread.seal(newId<OrgId>(), true)).toBeUndefined();
    await thread.stop();
  });
});
