import pg from 'pg';
import type { OrgId } from '../../src/kernel/ids.js';
import type { Pg } from '../../src/platform/database/pg.js';
import { positional, type SqlParams } from '../../src/platform/database/sql.js';
import type { TxRunner } from '../../src/platform/database/tx.js';
import { DispatchStore, type DispatchFilter } from '../../src/registry/dispatch/dispatch.store.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

const org = '0190aaaa-0000-7000-8000-000000000001' as OrgId;
const agents = [1, 2, 3].map((n) => `0190bbbb-0000-7000-8000-00000000000${n}`);
const [foreign, agentId] = agents as [string, string];
const limit = 50;

/**
 * Checks that the cost of a list page depends on the shown rows only, and the cost of a count on the running calls
 * only.
 */
describe('60,000 calls', () => {
  let database: TestDatabase;
  let pool: pg.Pool;

  beforeAll(async () => {
    database = await createTestDatabase('dispatches');
    pool = new pg.Pool({ connectionString: database.url, max: 1 });
    await pool.query(
      `insert into a2a_task_instances (id, org_id, agent_id, agent_name, verb, session_id, work_type, status, caller,
         started_at, expires_at)
       select gen_random_uuid(), case when n % 3 = 0 then $3::uuid else $1::uuid end, ($2::uuid[])[1 + n % 3],
         'a', 'v', 's',
         case when n % 20000 = 7 then 'transparent:x' else 'explicit:x' end,
         case when n % 20000 = 8 then 'failed' when n % 20000 = 11 then 'active' else 'completed' end,
         case when n % 15000 = 1 then 'user:rare' else 'user:often' end,
         now() - n * interval '1 second', now() + interval '1 hour'
       from generate_series(1, 60000) n`,
      [org, agents, '0190aaaa-0000-7000-8000-000000000002'],
    );
    await pool.query(
      `insert into agent_cards (id, org_id, slug, name, url, card_url)
       select a, $1::uuid, a::text, 'a', a::text, 'u' from unnest($2::uuid[]) a`,
      [await anOrg(), agents],
    );
    await pool.query('vacuum analyze a2a_task_instances');
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  const anOrg = async () => {
    await pool.query(`insert into orgs (id, slug, name) values ($1, 'o', 'o')`, [org]);
    return org;
  };

  /** Returns the largest number of rows that any step of a statement read, discarded rows included. */
  async function mostRead(ask: (store: DispatchStore) => Promise<unknown>): Promise<number> {
    let plan = '';
    const spy = {
      rows: async (_name: string, statement: string, params: SqlParams) => {
        const { text, values } = positional(statement, params);
        const explained = `explain (analyze, costs off, timing off) ${text}`;
        const { rows } = await pool.query<Record<string, string>>({ text: explained, values });
        plan = rows.map((row) => row['QUERY PLAN']).join('\n');
        return [];
      },
    };
    await ask(new DispatchStore(spy as unknown as Pg, {} as TxRunner));
    const counts = [...plan.matchAll(/rows=(\d+)|Rows Removed by Filter: (\d+)/g)];
    expect(counts.length).toBeGreaterThan(1);
    return Math.max(...counts.map(([, read, removed]) => Number(read ?? removed)));
  }

  const deep = [new Date(Date.now() - 30_000_000).toISOString(), agentId];
  const filters: [string, DispatchFilter][] = [
    ['nothing', {}],
    ['an agent', { agentId }],
    ['an agent of another org', { agentId: foreign }],
    ['a caller with few calls', { caller: 'user:rare' }],
    ['failures', { status: 'failed' }],
    ['what runs', { status: 'running' }],
    ['what waits', { status: 'pending' }],
    ['the kind "transparent"', { kind: 'transparent' }],
    ['the kind "explicit"', { kind: 'explicit' }],
    ['failures of an agent', { agentId, status: 'failed' }],
    ['an agent and a start time', { agentId, from: new Date(Date.now() - 20_000_000).toISOString() }],
  ];

  it.each(filters)('RE-62 by %s: the first page', async (_what, filter) => {
    expect(await mostRead((store) => store.findPage(org, filter, limit))).toBeLessThanOrEqual(4 * limit);
  });

  it.each(filters)('RE-62 by %s: a deep page', async (_what, filter) => {
    expect(await mostRead((store) => store.findPage(org, filter, limit, deep))).toBeLessThanOrEqual(4 * limit);
  });

  it('RE-69 running calls are counted without a read of ended ones', async () => {
    expect(await mostRead((store) => store.records(org))).toBeLessThanOrEqual(20);
  });
});
