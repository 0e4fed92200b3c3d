import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { check, type Violation } from './checker.js';
import type { Scene } from './scene.js';

const mostConnections = 25;

/**
 * Waits until no work is left, reads the rows, and checks the history.
 * @param timeoutMs maximum time for the remaining work.
 */
export async function judge(scene: Scene, timeoutMs = 60_000): Promise<Violation[]> {
  const { history, rows, fleet } = scene;
  await settle(scene, timeoutMs);
  history.texts.push({ org: 'the log', where: 'a log line', text: fleet.logs() });
  await measureRest(scene);
  history.rows = await rows.read();
  return check(history);
}

async function settle({ rows }: Scene, timeoutMs: number): Promise<void> {
  for (const until = Date.now() + timeoutMs; Date.now() < until; await sleep(250)) {
    await hurry(rows).catch(() => undefined);
    const [left] = await rows
      .sql<{ tasks: number; posts: number }>(
        `select (select count(*)::int from a2a_tasks where status_state in ('submitted', 'working')) as tasks,
           (select count(*)::int from webhook_deliveries where status = 'pending') as posts`,
      )
      .catch(() => [undefined]);
    if (left && left.tasks === 0 && left.posts === 0) return;
  }
}

/**
 * Shortens waits: the next attempt of a webhook is minutes away, and a mailbox task with a lost lease answer would wait
 * for half a minute.
 */
async function hurry(rows: Scene['rows']): Promise<void> {
  await rows.sql(
    `update webhook_deliveries set next_at = now() where id in (
       select id
       from webhook_deliveries
       where status = 'pending' and next_at > now()
       order by task_id, config_id, seq
       for update skip locked)`,
  );
  await rows.sql(
    `update a2a_tasks set lease_until = now() where id in (
       select id
       from a2a_tasks
       where lease_owner is null and lease_until > now() and status_state = 'working' and agent_name = 'box'
         and updated_at < now() - interval '4 seconds'
       for update skip locked)`,
  );
}

/** I10: at rest no transaction is open, and the numbers of connections and open files are below their limits. */
async function measureRest({ rows, fleet, history }: Scene): Promise<void> {
  const { idle, all } = await quietConnections(rows);
  history.measures.push({ invariant: 'I10', what: 'connections idle in a transaction', value: idle, most: 0 });
  const most = mostConnections * fleet.slots.length;
  history.measures.push({ invariant: 'I10', what: 'connections to the database', value: all, most });
  for (const { name, pid, isReady } of fleet.slots) {
    if (pid === undefined || !isReady) continue;
    history.measures.push({ invariant: 'I10', what: `open files of ${name}`, value: filesOf(pid), most: 200 });
    history.measures.push({ invariant: 'I10', what: `memory of ${name} in MiB`, value: memoryOf(pid), most: 600 });
  }
}

interface Connections {
  readonly idle: number;
  readonly all: number;
}

/**
 * Sweeps continue at rest and may be between two statements of a transaction. A transaction that is really left open is
 * still there after many polls.
 */
async function quietConnections(rows: Scene['rows']): Promise<Connections> {
  for (let polls = 20; ; polls--) {
    const [found] = await rows.sql<Connections>(
      `select count(*) filter (where state like 'idle in transaction%')::int as idle, count(*)::int as all
       from pg_stat_activity where datname = current_database() and application_name <> 'chaos'`,
    );
    if (found!.idle === 0 || polls === 0) return found!;
    await sleep(250);
  }
}

/** Returns the number of open files. Linux only; elsewhere 0. */
function filesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

function memoryOf(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;
  } catch {
    return 0;
  }
}
