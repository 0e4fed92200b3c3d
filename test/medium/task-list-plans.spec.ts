import pg from 'pg';
import type { Pg } from '../../src/platform/database/pg.js';
import { positional, type SqlParams } from '../../src/platform/database/sql.js';
import { TaskListStore, type ListPosition, type TaskFilter } from '../../src/tasks/storage/task-list.store.js';
import type { TaskStore } from '../../src/tasks/storage/task.store.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

const org = '0190aaaa-0000-7000-8000-000000000001';
const agents = [1, 2, 3].map((n) => `0190bbbb-0000-7000-8000-00000000000${n}`);
const [agent] = agents as [string];
const limit = 50;

/** Checks that the cost of a list page depends on the shown rows only. */
describe('lists of 60,000 tasks', () => {
  let database: TestDatabase;
  let pool: pg.Pool;

  beforeAll(async () => {
    database = await createTestDatabase('task_lists');
    pool = new pg.Pool({ connectionString: database.url, max: 1 });
    await pool.query(
      `insert into a2a_tasks (id, org_id, agent_id, agent_name, context_id, owner, principal, status_state,
         status_timestamp, history, artifacts, seq, folded_seq)
       select gen_random_uuid(), $1, ($2::uuid[])[1 + n % 3], 'a', n::text,
         case when n % 2 = 0 then 'key:a' else 'key:b' end, '{}',
         case when n % 20000 = 7 then 'failed' else 'completed' end, now() - n * interval '1 second', '[]', '[]', 1, 0
       from generate_series(1, 60000) n`,
      [org, agents],
    );
    await pool.query(
      `insert into a2a_task_events (task_id, seq, body, terminal, at) select id, 1, '{}', true, now() from a2a_tasks`,
    );
    await pool.query('vacuum analyze a2a_tasks, a2a_task_events');
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  /** Returns the largest number of rows that any step of the page's statement read, discarded rows included. */
  async function mostRead(filter: Omit<TaskFilter, 'org'>, after?: ListPosition): Promise<number> {
    let plan = '';
    const spy = {
      rows: async (_name: string, statement: string, params: SqlParams) => {
        const { rows } = await pool.query<Record<string, string>>(
          positional(`explain (analyze, costs off, timing off) ${statement}`, params),
        );
        plan = rows.map((row) => row['QUERY PLAN']).join('\n');
        return [];
      },
    };
    const store = new TaskListStore(spy as unknown as Pg, { fold: () => [] } as unknown as TaskStore);
    await store.readPage({ org, ...filter }, limit, { after, artifacts: true, history: true, statusMessage: true });
    const counts = [...plan.matchAll(/rows=(\d+)|Rows Removed by Filter: (\d+)/g)];
    expect(counts.length).toBeGreaterThan(2);
    expect(plan).toMatch(/on a2a_task_events e/);
    return Math.max(...counts.map(([, read, removed]) => Number(read ?? removed)));
  }

  const deep: ListPosition = [new Date(Date.now() - 30_000_000).toISOString(), agent];
  const filters: [string, Omit<TaskFilter, 'org'>][] = [
    ['an agent', { agent }],
    ['an agent and an owner', { agent, owner: 'key:a' }],
    ['an agent and the most frequent state', { agent, state: 'TASK_STATE_COMPLETED' }],
    ['an agent and a rare state', { agent, state: 'TASK_STATE_FAILED' }],
    ['an agent and a state without tasks', { agent, state: 'TASK_STATE_INPUT_REQUIRED' }],
    ['a rare state of a whole org', { state: 'TASK_STATE_FAILED' }],
    ['a whole org', {}],
    ['an owner, for any agent', { owner: 'key:a' }],
    ['an agent, since a time', { agent, since: Date.now() - 20_000_000 }],
    ['a context', { agent, contextId: '4711' }],
  ];

  it.each(filters)('by %s: the first page', async (_what, filter) => {
    expect(await mostRead(filter)).toBeLessThanOrEqual(4 * limit);
  });

  it.each(filters)('by %s: a deep page', async (_what, filter) => {
    expect(await mostRead(filter, deep)).toBeLessThanOrEqual(4 * limit);
  });
});
