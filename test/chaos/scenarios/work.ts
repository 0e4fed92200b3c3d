import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/gateway/eventually.js';
import { times, words, type Scenario } from './scenario.js';

/** Longer than a takeover on a busy machine, shorter than a lease. */
const takeoverMs = 7_000;
/** Half the time between two events of the agent `strides`. */
const halfStrideMs = 1_000;

/** Scenarios of the leases of tasks. */
export const workScenarios: readonly Scenario[] = [
  {
    // Simulates a pause longer than the lease in less time: the presence connection of the paused process is
    // terminated.
    name: 'handover',
    needsTwo: true,
    play: async ({ scene: { history, rows, callers }, a }) => {
      const sends = times(3).map(() =>
        callers.alpha.tryToSend(a, { agent: 'strides', payload: words(), wait: true, echoes: true }),
      );
      const running = await eventually(
        () =>
          rows.sql(
            `select id, lease_owner as owner, lease_epoch as epoch
             from a2a_tasks
             where agent_name = 'strides' and seq >= 3 and lease_owner is not null`,
          ),
        (tasks) => tasks.length === 3,
      );
      await sleep(halfStrideMs);
      const fault = { kind: 'freeze', what: a.name, at: Date.now(), until: Infinity };
      history.faults.push(fault);
      a.freeze();
      await rows.sql(
        `select pg_terminate_backend(l.pid)
         from pg_locks l
         where l.locktype = 'advisory' and l.objid = $1::bigint::oid`,
        [running[0].owner],
      );
      const since = Date.now();
      const left = (): Promise<unknown[]> =>
        rows.sql(`select from a2a_tasks where id = any($1) and lease_epoch = $2`, [
          running.map(({ id }) => id),
          running[0].epoch,
        ]);
      await eventually(left, (tasks) => tasks.length === 0, takeoverMs).catch(() => undefined);
      const value = Date.now() - since;
      history.measures.push({
        invariant: 'I1',
        what: 'ms until the work of a stopped process was taken over',
        value,
        most: takeoverMs,
      });
      // The paused process must have an event to write when it wakes, before the new holder writes one.
      await sleep(Math.max(0, halfStrideMs + 100 - value));
      a.thaw();
      fault.until = Date.now() + 2_000;
      await Promise.all(sends);
    },
  },
  {
    name: 'duplicates',
    needsTwo: true,
    needsRedis: true,
    play: async ({ scene: { callers, rows, redis } }) => {
      const { Queue } = await import('bullmq');
      const queue = new Queue('task-execution', { connection: { url: redis!.url }, prefix: redis!.prefix });
      queue.on('error', () => undefined);
      const ids = await Promise.all(
        times(6).map(() => callers.alpha.send({ agent: 'steps', payload: words(), echoes: true })),
      );
      await eventually(
        () => rows.sql(`select from a2a_tasks where id = any($1) and lease_owner is not null`, [ids]),
        (tasks) => tasks.length === 6,
      );
      // One process may fetch all jobs at once and hold these tasks itself, so some jobs come later, for another free
      // process.
      for (const taskId of times(8).flatMap(() => ids)) {
        await queue.add('task-execution', { taskId });
        await sleep(30);
      }
      await sleep(500);
      await queue.close();
    },
  },
  {
    name: 'renewal',
    play: async ({ scene: { callers, history, rows } }) => {
      await callers.alpha.send({ agent: 'longest', payload: words() });
      await sleep(6_700);
      const [lease] = await rows.sql<{ age: number }>(
        `select (15000 - extract(epoch from min(lease_until) - now()) * 1000)::int as age
         from a2a_tasks
         where agent_name = 'longest' and status_state = 'working'`,
      );
      history.measures.push({ invariant: 'I8', what: 'age of a lease in ms', value: lease?.age ?? NaN, most: 6_000 });
    },
  },
  {
    name: 'crash',
    play: async ({ scene: { callers, history }, a }) => {
      let isOver = false;
      const sender = async (wait: boolean): Promise<void> => {
        while (!isOver) await callers.alpha.tryToSend(a, { agent: 'echo', payload: words(), wait, echoes: true });
      };
      const senders = times(8).map((index) => sender(index % 2 === 0));
      await sleep(500);
      history.faults.push({ kind: 'kill', what: a.name, at: Date.now() });
      await a.kill();
      isOver = true;
      await Promise.all(senders);
      await a.start();
    },
  },
  {
    name: 'deploy',
    play: async ({ scene: { callers, history }, a }) => {
      const before = history.sends.length;
      const sends = times(5).map(() =>
        callers.alpha.tryToSend(a, { agent: 'slow', payload: words(), wait: true, echoes: true }),
      );
      await sleep(300);
      await a.kill('SIGTERM');
      await Promise.all(sends);
      const broken = history.sends.slice(before).filter(({ status }) => status !== 200).length;
      history.measures.push({ invariant: 'I1', what: 'calls that a stop interrupted', value: broken, most: 0 });
      await a.start();
    },
  },
];
