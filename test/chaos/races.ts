import { randomUUID } from 'node:crypto';
import type { Caller } from './caller.js';
import type { Slot } from './processes/fleet.js';
import type { ChaosResult } from './result.js';
import type { Scene } from './scene.js';
import { words } from './scenarios/scenario.js';
import { judge } from './verdict.js';

const lanes = 8;

type Race = (lane: Lane) => Promise<number>;

interface Lane {
  readonly scene: Scene;
  readonly alpha: Caller;
  readonly a: Slot;
  readonly b: Slot;
  /** A mailbox that only this lane uses. */
  readonly box: string;
}

/**
 * Runs `count` races. In each race two processes get conflicting requests at the same time, and the checker examines
 * the outcomes.
 */
export async function runRaces(scene: Scene, count: number): Promise<ChaosResult> {
  const [a, b] = scene.fleet.slots;
  const { alpha } = scene.callers;
  for (let lane = 0; lane < lanes; lane++) {
    const agent = { name: `box-${lane}`, description: 'a mailbox', executor: { kind: 'mailbox' }, a2a_enabled: true };
    await alpha.call(a!, 'POST', '/api/a2a/published', agent);
  }
  const begun = Date.now();
  let left = count;
  const run = async (index: number): Promise<void> => {
    const lane: Lane = { scene, alpha, a: a!, b: b!, box: `box-${index}` };
    for (let turn = index; left > 0; turn++) {
      const run = await races[turn % races.length]!(lane);
      left -= run;
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, index) => run(index)));
  const seconds = Math.round((Date.now() - begun) / 1_000);
  const ends = scene.history.ends.filter(({ accepted }) => accepted);
  const cancels = ends.filter(({ want }) => want === 'canceled').length;
  const share = Math.round((100 * cancels) / ends.length);
  // When the same side always wins, the requests do not really race.
  scene.history.measures.push({
    invariant: 'I7',
    what: 'share of the more frequent winner, cancel or complete, in %',
    value: Math.max(share, 100 - share),
    most: 90,
  });
  const violations = await judge(scene);
  return { violations, figures: { races: count - left, seconds, canceledPercent: share } };
}

const races: readonly Race[] = [
  async function sameKey({ alpha, a, b }) {
    const send = { agent: 'echo', payload: words(), key: randomUUID(), wait: true, echoes: true };
    await Promise.all([alpha.tryToSend(a, send), alpha.tryToSend(b, send)]);
    return 1;
  },
  async function doubleAnswer({ scene, alpha, a, b }) {
    const { taskId } = await alpha.tryToSend(a, { agent: 'asks', payload: words(), wait: true });
    const answer = async (slot: Slot): Promise<void> => {
      const sent = await alpha.tryToSend(slot, { agent: 'asks', payload: words(), taskId, wait: true });
      scene.history.answers.push({ taskId: taskId!, accepted: sent.taskId !== undefined });
    };
    await Promise.all([answer(a), answer(b)]);
    return 1;
  },
  /** Two workers ask for one task; then a cancel and a report try to end it. */
  async function doubleClaimThenEnds({ scene, alpha, a, b, box }) {
    const { history } = scene;
    await alpha.tryToSend(a, { agent: box, payload: words() });
    const lease = (slot: Slot) => alpha.call(slot, 'POST', `/api/mailbox/${box}/lease`);
    const leases = await Promise.all([lease(a), lease(b)]);
    const held = leases.filter((answer) => answer?.status === 200).map((answer) => answer!.body);
    for (const { task, leaseEpoch } of held)
      history.leases.push({ taskId: task.id, epoch: leaseEpoch, at: Date.now() });
    if (!held[0]) return 1;
    const { task, leaseEpoch: epoch } = held[0];
    const complete = async (): Promise<void> => {
      const event = { id: `${epoch}-end`, type: 'complete', text: 'done', leaseEpoch: epoch };
      const answer = await alpha.call(b, 'POST', `/api/executions/${task.id}/events`, event);
      history.ends.push({ taskId: task.id, want: 'completed', accepted: answer?.status === 200 });
    };
    await Promise.all([alpha.cancel(a, box, task.id), complete()]);
    return 2;
  },
];
