import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../support/gateway/eventually.js';
import { times, words, type Scenario } from './scenario.js';
import { eventRows, tasksWithText } from '../../support/gateway/event-rows.js';

const rounds = 8;

/** Scenarios of the queue that wakes workers. */
export const bellScenarios: readonly Scenario[] = [
  {
    // A lost job costs up to two sweeps; a delivered job costs milliseconds.
    name: 'bells',
    play: async ({ scene: { callers, history, rows } }) => {
      const { alpha } = callers;
      const ids: string[] = [];
      for (const _ of times(rounds)) {
        const taskId = await alpha.send({ agent: 'asks', payload: words() });
        await eventually(
          () => rows.sql(`select from a2a_tasks where id = $1 and status_state = 'input-required'`, [taskId]),
          ({ length }) => length === 1,
        );
        await alpha.send({ agent: 'asks', payload: words(), taskId });
        ids.push(taskId!);
        await sleep(rounds);
      }
      await eventually(
        () => rows.sql(`select from a2a_tasks where id = any($1) and status_state = 'completed'`, [ids]),
        ({ length }) => length === ids.length,
      );
      // The events are: task, working, question, answer, artifact, end.
      const gaps = await rows.sql<{ seq: number; ms: number }>(
        `select seq, (extract(epoch from lead(at) over (partition by task_id order by seq) - at) * 1000)::int as ms
         from ${eventRows} where task_id = any($1)`,
        [ids],
      );
      for (const [seq, what] of [
        [1, 'a new task'],
        [4, 'an answered one'],
      ] as const) {
        const sorted = gaps.filter((gap) => gap.seq === seq).map(({ ms }) => ms);
        const median = sorted.sort((x, y) => x - y)[sorted.length >> 1] ?? NaN;
        history.measures.push({
          invariant: 'I1',
          what: `median ms until ${what} is processed`,
          value: median,
          most: 300,
        });
      }
    },
  },
  {
    name: 'lost bells',
    needsRedis: true,
    play: async ({ scene: { callers, history, rows }, a, redis }) => {
      await redis!.kill();
      const before = history.sends.length;
      const payloads = times(10).map(() => words());
      const sends = payloads.map((payload) => callers.alpha.tryToSend(a, { agent: 'echo', payload, echoes: true }));
      await Promise.race([Promise.all(sends), sleep(4_000)]);
      const answered = history.sends.slice(before).filter(({ taskId }) => taskId !== undefined);
      const slowest = answered.length < sends.length ? Infinity : Math.max(...answered.map(({ ms }) => ms));
      history.measures.push({
        invariant: 'I1',
        what: 'slowest accept in ms while Redis is down',
        value: slowest,
        most: 1_500,
      });
      const left = (): Promise<unknown[]> =>
        rows.sql(
          `select
           from a2a_tasks t
           where t.status_state <> 'completed'
             and exists (select from unnest($1::text[]) payload where t.id in ${tasksWithText('payload')})`,
          [payloads],
        );
      await eventually(left, ({ length }) => length === 0, 6_000).catch(() => undefined);
      const { length } = await left();
      history.measures.push({
        invariant: 'I1',
        what: 'unfinished tasks while Redis is down',
        value: length,
        most: 0,
      });
      await redis!.up();
    },
  },
];
