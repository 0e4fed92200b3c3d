import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { canaryOfBeta } from '../scene.js';
import { times, words, type Scenario, type Stage } from './scenario.js';

/** Scenarios of the answers to callers and holders. */
export const doorScenarios: readonly Scenario[] = [
  {
    name: 'readers',
    play: async ({ scene: { callers } }) => {
      const readers = times(6).map((index) =>
        callers.alpha.stream(
          { agent: 'slow', payload: words(), key: randomUUID(), wait: true, echoes: true },
          index < 4 ? index + 1 : Infinity,
        ),
      );
      await Promise.all(readers);
    },
  },
  {
    name: 'keys',
    play: async ({ scene: { callers }, a, b }) => {
      for (const _ of times(12)) {
        const send = { agent: 'echo', payload: words(), key: randomUUID(), echoes: true };
        await Promise.all(times(8).map((racer) => callers.alpha.tryToSend(racer % 2 ? a : b, send)));
        await callers.alpha.tryToSend(a, { ...send, payload: words('another ') });
      }
    },
  },
  {
    name: 'ends',
    play: async (stage) => {
      for (const _ of times(12)) await race(stage);
      for (const _ of times(3)) await staleReport(stage);
    },
  },
  {
    name: 'neighbours',
    play: async ({ scene: { callers, history }, a }) => {
      const { alpha, beta } = callers;
      const taskId = await beta.send({
        agent: 'echo',
        payload: `${canaryOfBeta} ${words()}`,
        key: randomUUID(),
        wait: true,
      });
      const seen = await alpha.rpc(a, 'echo', 'GetTask', { id: taskId });
      const run = await alpha.call(a, 'GET', `/a2a/tasks/${taskId}`);
      const isSeen = seen?.body.result !== undefined || run?.status === 200;
      history.forbidden.push({ what: 'a task of another org was seen', happened: isSeen });
      for (const agent of ['forbidden', 'erring']) {
        const sent = await alpha.tryToSend(a, { agent, payload: words() });
        history.forbidden.push({
          what: `an act that a policy forbids was done (${agent})`,
          happened: sent.taskId !== undefined,
        });
      }
    },
  },
];

/** Ends one task by its caller and by its holder at the same moment, through both processes. */
async function race({ scene, a, b }: Stage): Promise<void> {
  const { alpha } = scene.callers;
  const { history } = scene;
  await alpha.send({ agent: 'box', payload: words() });
  const lease = await alpha.call(a, 'POST', '/api/mailbox/box/lease?waitMs=2000');
  const { task, leaseEpoch: epoch } = lease?.body ?? {};
  if (!task) return;
  const at = Date.now();
  const complete = { id: `${epoch}-end`, type: 'complete', text: 'done', leaseEpoch: epoch };
  const [, answer] = await Promise.all([
    alpha.cancel(a, 'box', task.id),
    alpha.call(b, 'POST', `/api/executions/${task.id}/events`, complete),
  ]);
  const accepted = answer?.status === 200;
  history.reports.push({ taskId: task.id, epoch, at, accepted });
  history.ends.push({ taskId: task.id, want: 'completed', accepted });
  await alpha.cancel(b, 'box', task.id);
}

/** Lets a holder that was silent for too long report after another worker has leased its task. */
async function staleReport({ scene, a, b }: Stage): Promise<void> {
  const { history, rows, callers } = scene;
  const lease = () => callers.alpha.call(a, 'POST', '/api/mailbox/box/lease?waitMs=2000');
  await callers.alpha.send({ agent: 'box', payload: words() });
  const first = (await lease())?.body;
  if (!first?.task) return;
  const taskId = first.task.id as string;
  // After the answer, the process records the hand-out and sets the lease again. So the statement repeats until it
  // finds the row; the task may also have ended before.
  const lose = `
    update a2a_tasks
    set lease_until = now() - interval '1 second'
    where id = $1 and lease_owner is null
    returning id`;
  for (let attempt = 0; attempt < 50 && (await rows.sql(lose, [taskId])).length === 0; attempt++) await sleep(20);
  const next = (await lease())?.body;
  // Another worker may have leased the task first, and `next` is then another task with an unrelated epoch.
  const second = next?.task?.id === taskId ? next : undefined;
  if (second) history.leases.push({ taskId, epoch: second.leaseEpoch, at: Date.now() });
  await sleep(10);
  for (const epoch of [first.leaseEpoch, second?.leaseEpoch]) {
    const event = { id: `${epoch}-end`, type: 'complete', text: 'done', leaseEpoch: epoch };
    const at = Date.now();
    const answer = await callers.alpha.call(b, 'POST', `/api/executions/${taskId}/events`, event);
    history.reports.push({ taskId, epoch, at, accepted: answer?.status === 200 });
  }
  // The task has ended, so this cancel is always too late.
  await callers.alpha.cancel(a, 'box', taskId);
}
