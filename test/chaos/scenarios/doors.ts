import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { canaryOfBeta } from '../scene.js';
import { times, words, type Scenario, type Stage } from './scenario.js';

/** Scenarios of what callers and holders are told. */
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
          what: `what a policy forbids was done (${agent})`,
          happened: sent.taskId !== undefined,
        });
      }
    },
  },
];

/** One task, ended by its caller and by its holder at the same moment, through both processes. */
async function race({ scene, a, b }: Stage): Promise<void> {
  const { alpha } = scene.callers;
  const { history } = scene;
  await alpha.send({ agent: 'box', payload: words() });
  const lease = await alpha.call(a, 'POST', '/api/mailbox/box/lease?waitMs=2000');
  const { task, leaseEpoch: epoch } = lease?.body ?? {};
  if (!task) return;
  const at = Date.now();
  const complete = { id: `${epoch}-end`, type: 'complete', text: 'done', leaseEpoch: epoch };
  const [, told] = await Promise.all([
    alpha.cancel(a, 'box', task.id),
    alpha.call(b, 'POST', `/api/executions/${task.id}/events`, complete),
  ]);
  const accepted = told?.status === 200;
  history.reports.push({ taskId: task.id, epoch, at, accepted });
  history.ends.push({ taskId: task.id, want: 'completed', accepted });
  await alpha.cancel(b, 'box', task.id);
}

/** A holder that was silent for too long comes back when somebody else has its task. */
async function staleReport({ scene, a, b }: Stage): Promise<void> {
  const { history, rows, callers } = scene;
  const lease = () => callers.alpha.call(a, 'POST', '/api/mailbox/box/lease?waitMs=2000');
  await callers.alpha.send({ agent: 'box', payload: words() });
  const first = (await lease())?.body;
  if (!first?.task) return;
  const taskId = first.task.id as string;
  // Its process notes after the answer that the task was handed out, and holds it anew by that; it may have been killed before.
  const lose = `update a2a_tasks set lease_until = now() - interval '1 second' where id = $1 and lease_owner is null returning id`;
  for (let look = 0; look < 50 && (await rows.sql(lose, [taskId])).length === 0; look++) await sleep(20);
  const next = (await lease())?.body;
  // Another worker may have been faster, and this one has another task: its epoch says nothing of the first.
  const second = next?.task?.id === taskId ? next : undefined;
  if (second) history.leases.push({ taskId, epoch: second.leaseEpoch, at: Date.now() });
  await sleep(10);
  for (const epoch of [first.leaseEpoch, second?.leaseEpoch]) {
    const event = { id: `${epoch}-end`, type: 'complete', text: 'done', leaseEpoch: epoch };
    const at = Date.now();
    const told = await callers.alpha.call(b, 'POST', `/api/executions/${taskId}/events`, event);
    history.reports.push({ taskId, epoch, at, accepted: told?.status === 200 });
  }
  // It has ended: this one comes too late in any case.
  await callers.alpha.cancel(a, 'box', taskId);
}
