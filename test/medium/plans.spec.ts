import pg from 'pg';
import { alongTheKey, chainHead, waitingEvents } from '../../src/audit/audit-pending.store.js';
import { newId, type AgentId, type OrgId, type TaskId } from '../../src/kernel/ids.js';
import type { Act } from '../../src/kernel/verb-bus.js';
import { migrateDatabase } from '../../src/platform/database/migrate.js';
import type { Presence } from '../../src/platform/database/presence.js';
import { Pg } from '../../src/platform/database/pg.js';
import { positional, type SqlParams } from '../../src/platform/database/sql.js';
import { Metrics } from '../../src/platform/telemetry/metrics.js';
import { ContinuationStore, moving } from '../../src/continuations/storage/continuation.store.js';
import { ThreadAnswerStore, type ClaimedAnswer } from '../../src/continuations/threads/thread-answer.store.js';
import { Vault } from '../../src/platform/secrets/vault.js';
import { EventSinks } from '../../src/tasks/event-sinks.js';
import { applyUpdate, openTask, type Step } from '../../src/tasks/lifecycle/task.lifecycle.js';
import { TaskLeases } from '../../src/tasks/storage/task-lease.store.js';
import { TaskWriter, type TaskChange } from '../../src/tasks/storage/task-writer.js';
import type { TaskStore } from '../../src/tasks/storage/task.store.js';
import { TaskWatchStore } from '../../src/tasks/storage/task-watch.store.js';
import { agentStatsRecorder } from '../../src/registry/agents/agent-stats.recorder.js';
import { asAdmin, runPrefix } from '../support/gateway/admin.js';

const org = '01890000-0000-7000-8000-000000000001';
const taskColumns = `
  id, org_id, agent_id, agent_name, context_id, owner, principal, status_state, status_timestamp, history, artifacts,
  seq, folded_seq`;

/** Returns a statement as PostgreSQL gets it. */
const statementOf = (text: string, params: SqlParams | unknown[] = []): { text: string; values: unknown[] } =>
  Array.isArray(params) ? { text, values: params } : positional(text, params);

const step: Step = { now: Date.now(), newId, maxWeight: 100_000 };
/** Returns the change that ends a task with this id. */
const ended = (id: TaskId): TaskChange => {
  const principal = { kind: 'user', id: 'o', role: 'member', groups: [] } as const;
  const whose = {
    id,
    orgId: org as OrgId,
    agentId: org as AgentId,
    agentName: 'a',
    contextId: 'c',
    principal,
    depth: 0,
  };
  const from = openTask(whose, { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }, step).task;
  const { task, event } = applyUpdate(from, { status: { state: 'TASK_STATE_COMPLETED' } }, step);
  return { task, from, events: [event], hold: {} };
};

/** Checks that the cost of a statement does not grow with its table, with or without statistics for the planner. */
describe('plans of hot statements', () => {
  const name = `${runPrefix()}plans_${Math.random().toString(36).slice(2)}`;
  let client: pg.Client;

  beforeAll(async () => {
    await asAdmin(async (admin) => void (await admin.query(`create database "${name}"`)));
    const url = new URL(process.env.RIALTO_TEST_ADMIN_URL!);
    url.pathname = `/${name}`;
    await migrateDatabase(url.href);
    client = new pg.Client({ connectionString: url.href });
    await client.connect();
    await client.query('set plan_cache_mode = force_generic_plan');
  });
  afterAll(async () => {
    await client.end();
    await asAdmin(async (admin) => void (await admin.query(`drop database if exists "${name}" with (force)`)));
  });

  let prepared = 0;
  const planOf = async (type: string, statement: string, value: string): Promise<string> => {
    const plan = `plan${prepared++}`;
    await client.query(`prepare ${plan} (${type}) as ${statement}`);
    const { rows } = await client.query<Record<string, string>>(`explain execute ${plan}('${value}')`);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };

  /** Returns a connection that collects the statements of a store instead of running them. */
  const collecting = (asked: { text: string; values: unknown[] }[]): Pg => {
    const query = (asking: { text: string; values: unknown[] }) => (asked.push(asking), Promise.resolve({ rows: [] }));
    return new Pg({ query } as unknown as pg.Pool);
  };

  /** Checks that a statement uses this index, and reads almost no rows when there is no match. */
  const expectByKey = async ({ text, values }: { text: string; values: unknown[] }, index: string): Promise<void> => {
    const { rows } = await client.query<Record<string, string>>(`explain (analyze, costs off) ${text}`, values);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toContain(`Index Scan using ${index}`);
    const removed = [...plan.matchAll(/Rows Removed by (?:Join )?Filter: (\d+)/g)].map(([, count]) => Number(count));
    expect(Math.max(...removed, 0)).toBeLessThan(100);
  };

  it('the end of a call is found by its key while the table is new and empty', async () => {
    const act = { action: 'a2a_invoke', agent: { id: org }, ctx: { org: { id: org } } } as unknown as Act;
    const [change] = agentStatsRecorder.end!(act, { outcome: 'completed', durationMs: 1 });
    const plan = await planOf('jsonb', `with s as (${change!.statement.sql('$1')}) select`, '[]');
    expect(plan).toMatch(/Index Scan using pk_a2a_task_instances/);
    expect(plan).not.toMatch(/Seq Scan/);
  });

  it('waiting events are read along their key, without the rows that earlier batches deleted', async () => {
    const fill =
      'insert into audit_pending (org_id, event_id) select $1, gen_random_uuid() from generate_series(1, 3000)';
    await client.query(fill, [org]);
    await client.query('delete from audit_pending');
    await client.query(`begin; ${alongTheKey}`);
    const plan = await planOf('uuid', positional(waitingEvents, { org }).text, org);
    await client.query('rollback');
    expect(plan).toMatch(/Index (Only )?Scan using pk_audit_pending/);
    expect(plan).not.toMatch(/Bitmap|Seq Scan/);
  });

  it('a check of the bounds on tasks reads a thousand tasks along their keys', async () => {
    await client.query(
      `insert into a2a_tasks (${taskColumns})
       select gen_random_uuid(), $1, $1, 'a', 'c', 'o', '{}', 'completed', now(), '[]', '[]', 1, 1
       from generate_series(1, 60000)`,
      [org],
    );
    await client.query(
      `insert into a2a_task_events (task_id, seq, body, terminal, at) select id, 1, '{}', true, now() from a2a_tasks`,
    );
    await client.query('analyze a2a_tasks, a2a_task_events');
    let text = '';
    const spy = {
      rows: (_name: string, sql: string, params: SqlParams) => (
        ({ text } = statementOf(sql, params)),
        Promise.resolve([])
      ),
    } as unknown as Pg;
    await new TaskWatchStore(spy).breaches(org);
    const plan = await planOf('uuid', text, org);
    expect(plan).toMatch(/pk_a2a_tasks/);
    expect(plan).toMatch(/pk_a2a_task_events/);
    expect(plan).not.toMatch(/Seq Scan/);
  });

  it('claimed, searched, hurried and ended tasks are found by their key in a backlog without statistics', async () => {
    const { rows } = await client.query<{ id: TaskId }>(
      `insert into a2a_tasks (${taskColumns}, next_at)
       select gen_random_uuid(), $1::uuid, $1::uuid, 'a', 'c', 'o', '{}', 'submitted', now(), '[]', '[]', 1, 1,
         now() - interval '1 minute'
       from generate_series(1, 5000)
       returning id`,
      [org],
    );
    const asked: { text: string; values: unknown[] }[] = [];
    const spy = {
      rows: (_name: string, text: string, params: SqlParams | unknown[]) => (
        asked.push(statementOf(text, params)),
        Promise.resolve([])
      ),
    } as unknown as Pg;
    const leases = new TaskLeases(spy, { id: 1 } as Presence, { ofBriefRows: () => [] } as unknown as TaskStore);
    const writer = new TaskWriter(spy, new EventSinks(), new Metrics());
    const ids = rows.slice(0, 50).map(({ id }) => id);
    await Promise.all(ids.map((id) => leases.claim(id)));
    await Promise.allSettled(ids.map((id) => writer.commitInBatch(ended(id))));
    await leases.isWaiting(ids[0]!);
    await leases.makeDueNow(ids[0]!);
    for (const one of asked) await expectByKey(one, 'pk_a2a_tasks');
    await client.query('delete from a2a_tasks where next_at is not null');
  });

  it('remote work is claimed, moved and closed by its key, in a backlog without statistics', async () => {
    const follow = (count: number, ended: string) =>
      client.query<{ id: string; task_id: string }>(
        `insert into a2a_continuations (id, org_id, task_id, agent_id, agent_slug, agent_url, remote_task_id,
           principal, request_id, status, deadline_at, ended_at)
         select gen_random_uuid(), $1::uuid, gen_random_uuid(), $1::uuid, 'a', 'http://x', 'r',
           '{}', 'q', 'processing', now(), ${ended}
         from generate_series(1, $2::int)
         returning id, task_id`,
        [org, count],
      );
    await follow(20_000, 'now()');
    await client.query('analyze a2a_continuations');
    const { rows } = await follow(5_000, 'null');
    const [{ id, task_id: taskId }] = rows as [{ id: string; task_id: string }];
    const asked: { text: string; values: unknown[] }[] = [];
    const spy = collecting(asked);
    const store = new ContinuationStore(spy);
    await store.resume(taskId, 'r');
    await store.close(taskId, 'r', 'failed');
    for (const one of asked) await expectByKey(one, 'uq_a2a_continuations_remote');
    const { statement, row } = moving({ id, taskId: taskId as TaskId }, { status: 'failed', polls: 0 });
    await expectByKey({ text: statement.sql('$1'), values: [JSON.stringify([row])] }, 'pk_a2a_continuations');
  });

  it('an answer to a thread is claimed and notified by its key, in a backlog without statistics', async () => {
    const hold = (count: number, ended: string) =>
      client.query<{ id: string }>(
        `insert into thread_answers (id, org_id, task_id, url, thread_id, thread_key, ended_at)
         select gen_random_uuid(), $1, gen_random_uuid(), 'http://x', 't', 'k', ${ended}
         from generate_series(1, $2::int)
         returning id`,
        [org, count],
      );
    await hold(20_000, 'now()');
    await client.query('analyze thread_answers');
    const { rows } = await hold(5_000, 'null');
    const asked: { text: string; values: unknown[] }[] = [];
    const spy = collecting(asked);
    const store = new ThreadAnswerStore(spy, new Vault(Buffer.alloc(32)), { id: 1 } as Presence);
    const answer = { id: rows[0]!.id, leaseEpoch: 0 } as ClaimedAnswer;
    await store.claim(answer.id);
    await store.recordProgress(answer, 1, 1);
    await store.defer(answer, 1, 'x');
    for (const one of asked) await expectByKey(one, 'pk_thread_answers');
  });

  it('abuse 36 one index finds due tasks org by org, the oldest of each first, and counts open ones', async () => {
    const other = '01890000-0000-7000-8000-000000000002';
    const open = `
      insert into a2a_tasks (${taskColumns}, next_at)
      select gen_random_uuid(), $1::uuid, $1::uuid, 'a', 'c', $4, '{}', 'submitted', now(), '[]', '[]', 1, 1,
        now() - interval '1 minute' * $3::float
      from generate_series(1, $2::int)`;
    const begun = performance.now();
    await client.query(open, [org, 400, 3, 'eve']);
    await client.query(open, [org, 20_000, 2, 'adam']);
    await client.query(open, [other, 30, 1, 'eve']);
    await client.query('analyze a2a_tasks');
    const asked: { text: string; values: unknown[] }[] = [];
    const spy = {
      rows: async (_name: string, text: string, params: SqlParams | unknown[] = []) => {
        const statement = statementOf(text, params);
        asked.push(statement);
        return (await client.query(statement)).rows;
      },
    } as unknown as Pg;
    const leases = new TaskLeases(spy, { id: 1 } as Presence, {} as TaskStore);
    const due = await leases.findDue(200);
    const whose = await client.query<{ org_id: string; owner: string }>(
      `select t.org_id, t.owner
       from unnest($1::uuid[]) with ordinality as due(id, place) join a2a_tasks t using (id)
       order by place`,
      [due.map(({ id }) => id)],
    );
    const orgs = whose.rows.map(({ org_id: id }) => id);
    expect(orgs.slice(0, 60).filter((id) => id === other)).toHaveLength(30);
    expect(orgs).toHaveLength(130);
    // Of the first org there are 100, because its senders take turns too.
    expect(whose.rows.filter((row) => row.org_id === org && row.owner === 'adam')).toHaveLength(50);
    expect((await leases.findDue(200, { orgs: [org], senders: [] })).length).toBe(30);
    const { count, lagSeconds } = await leases.countWaiting();
    expect(count).toBe(10_000);
    expect(lagSeconds).toBeGreaterThanOrEqual(180);
    expect(lagSeconds).toBeLessThanOrEqual(181 + (performance.now() - begun) / 1_000);
    const counts = await leases.countOpen([org, other], [org], { perOrg: 1_000, all: 15_000 });
    expect(counts).toEqual(
      new Map([
        [org, 1_000],
        [other, 30],
        [`${org} eve`, 400],
        [`${org} adam`, 600],
        ['all', 15_000],
      ]),
    );
    for (const { text, values } of asked) {
      const { rows } = await client.query<Record<string, string>>(`explain ${text}`, values);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toMatch(/ix_a2a_tasks_open/);
      expect(plan).not.toMatch(/Seq Scan on a2a_tasks/);
    }
  });

  it('the head of a chain is read from the end of its key', async () => {
    await client.query(
      `insert into audit_chain (org_id, sequence, event_id, prev_hash, hash, whole)
       select $1, n, gen_random_uuid(), repeat('0', 64), repeat('0', 64), true from generate_series(1, 3000) n`,
      [org],
    );
    await client.query('analyze audit_chain');
    const plan = await planOf('uuid', positional(chainHead, { org }).text, org);
    expect(plan).toMatch(/Limit[^]*Index Scan Backward using pk_audit_chain/);
    expect(plan).not.toMatch(/Seq Scan on audit_chain/);
  });
});
