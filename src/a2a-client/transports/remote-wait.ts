import { setTimeout as wait } from 'node:timers/promises';
import { RialtoError } from '../../kernel/errors.js';
import type { BridgeReply } from '../../protocol/a2a/remote/bridge-call.js';
import { interruptedStates, terminalStates } from '../../protocol/a2a/states.js';
import type { Deadline } from '../../kernel/abort.js';
import { nextTryAfter } from './retry-plan.js';

export type TaskReply = Extract<BridgeReply, { kind: 'task' }>;

/** A task at its remote agent, while a caller waits for it. */
export interface RemoteTask {
  get(taskId: string, deadline: Deadline): Promise<BridgeReply>;
  /** Has a short deadline of its own, because the deadline of the caller is over or the caller has left. */
  cancel(taskId: string): Promise<unknown>;
}

export interface Pace {
  readonly firstMs: number;
  readonly mostMs: number;
  /** Random number from 0 up to 1: spreads the polls of callers that began at the same time. */
  readonly random: () => number;
}

const growth = 1.5;
const pollLimitMs = 15_000;
/** Number of failed polls in a row after which the task counts as lost. */
const maxMisses = 3;

/** Time limit, abort signals and poll intervals of a wait. */
export interface WaitLimits {
  readonly deadline: Deadline;
  readonly signals: readonly AbortSignal[];
  readonly pace: Pace;
}

/** Handles a call with a task that is still running. */
export type Watch = (first: TaskReply, remote: RemoteTask, limits: WaitLimits) => Promise<BridgeReply>;

/** True when there is nothing to wait for: the task ended, asks its caller, or the reply is a message (AN-34). */
export function isSettled(reply: BridgeReply): boolean {
  return reply.kind === 'message' || terminalStates.has(reply.state) || interruptedStates.has(reply.state);
}

/**
 * Polls a task until it is settled. The first end counts, even when the remote agent reports another one later; an
 * unknown state is not an end. Throws `remote_timeout` at the deadline, `canceled` when a signal aborts, and the error
 * of a poll or of a failed task, all with `data.taskId`.
 */
export async function waitUntilSettled(
  { taskId }: TaskReply,
  remote: RemoteTask,
  { deadline, signals, pace }: WaitLimits,
): Promise<BridgeReply> {
  const signal = AbortSignal.any([...signals]);
  try {
    for (let pause = pace.firstMs; ; pause = Math.min(pace.mostMs, pause * growth)) {
      await sleep(Math.min(deadline.leftMs, pause * (0.75 + pace.random() / 2)), signal);
      const reply = await pollTask(taskId, remote, deadline, signal);
      if (isSettled(reply)) return reply;
    }
  } catch (error) {
    throw withTaskId(RialtoError.from(error), taskId);
  }
}

/**
 * Waits for a task that no keeper stores: on a timeout or a cancel it asks the remote agent to stop, and does not wait
 * for the answer.
 */
export const waitOrCancel: Watch = async (first, remote, limits) => {
  try {
    return await waitUntilSettled(first, remote, limits);
  } catch (error) {
    const { code } = RialtoError.from(error);
    if (code === 'remote_timeout' || code === 'canceled') remote.cancel(first.taskId).catch(() => undefined);
    throw error;
  }
};

/** Waits; fails with `canceled` as soon as the signal aborts. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await wait(ms, undefined, { signal }).catch((cause: unknown) => {
    throw new RialtoError('canceled', { cause });
  });
}

async function pollTask(
  taskId: string,
  remote: RemoteTask,
  deadline: Deadline,
  signal: AbortSignal,
): Promise<BridgeReply> {
  for (let misses = 1; ; misses++) {
    if (deadline.leftMs === 0) throw new RialtoError('remote_timeout');
    try {
      return ofTask(await remote.get(taskId, deadline.within(pollLimitMs)), taskId);
    } catch (error) {
      const pause = pauseAfterMiss(RialtoError.from(error), misses, deadline.leftMs);
      if (pause === undefined) throw error;
      await sleep(pause, signal);
    }
  }
}

/**
 * Returns the pause before the next poll. A poll without an answer says nothing about the task, so it is repeated,
 * unlike a refusal.
 */
function pauseAfterMiss(error: RialtoError, misses: number, leftMs: number): number | undefined {
  const gotNoAnswer =
    leftMs > 0 &&
    (error.code === 'remote_timeout' || (error.code === 'remote_transport' && error.data?.httpStatus === undefined));
  if (gotNoAnswer) return misses < maxMisses ? Math.min(leftMs, 100 * 2 ** misses) : undefined;
  // The wall clock matters only for a Retry-After in the form of a date; for a poll the form in seconds is enough.
  return nextTryAfter({ kind: 'read' }, error, { tries: misses, leftMs, now: 0 });
}

function ofTask(reply: BridgeReply, taskId: string): BridgeReply {
  if (reply.kind === 'task' && reply.taskId === taskId) return reply;
  throw new RialtoError('remote_invalid_response', {
    message: 'the remote agent answered with another task',
    data: { reason: 'another task' },
  });
}

/** Returns the same error with the id of the remote task. */
function withTaskId(error: RialtoError, taskId: string): RialtoError {
  const { code, message, hint, violations, data } = error;
  return new RialtoError(code, { message, hint, violations, data: { ...data, taskId }, cause: error.cause ?? error });
}
