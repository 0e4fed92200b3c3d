import { setTimeout as wait } from 'node:timers/promises';
import { RialtoError } from '../../kernel/errors.js';
import type { BridgeReply } from '../../protocol/a2a/remote/bridge-call.js';
import { interruptedStates, terminalStates } from '../../protocol/a2a/states.js';
import type { Deadline } from './deadline.js';
import { nextTryAfter } from './retry-plan.js';

export type TaskReply = Extract<BridgeReply, { kind: 'task' }>;

/** A task at its remote agent, while somebody waits for it. */
export interface RemoteTask {
  get(taskId: string, deadline: Deadline): Promise<BridgeReply>;
  /** Has its own short deadline: the caller's is over, or it has left. */
  cancel(taskId: string): Promise<unknown>;
}

export interface Pace {
  readonly firstMs: number;
  readonly mostMs: number;
  /** Chance, from 0 up to 1: callers that began together do not go on together. */
  readonly random: () => number;
}

const growth = 1.5;
const pollLimitMs = 15_000;
/** Looks in a row that may fail before the task counts as lost. */
const maxMisses = 3;

/** How long somebody waits, and who may end the wait. */
export interface WaitLimits {
  readonly deadline: Deadline;
  readonly signals: readonly AbortSignal[];
  readonly pace: Pace;
}

/** What becomes of a call whose task is still under way. */
export type Watch = (first: TaskReply, remote: RemoteTask, limits: WaitLimits) => Promise<BridgeReply>;

/** True when there is nothing to wait for: an end, a question to the caller, or no task at all (AN-34). */
export function isSettled(reply: BridgeReply): boolean {
  return reply.kind === 'message' || terminalStates.has(reply.state) || interruptedStates.has(reply.state);
}

/**
 * Looks at a task until it is settled: the first end counts, whatever the remote says later (F32); a state that nobody knows is
 * no end (F29). At the deadline `remote_timeout`, when a signal aborts `canceled`, both with `data.taskId`. Throws what a look
 * throws, with `data.taskId`, for an end in failure too.
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
      const reply = await look(taskId, remote, deadline, signal);
      if (isSettled(reply)) return reply;
    }
  } catch (error) {
    throw withTaskId(RialtoError.from(error), taskId);
  }
}

/** The same for whom nobody keeps the task: at the end of patience the remote is told to stop, without waiting for its answer. */
export const waitOrCancel: Watch = async (first, remote, limits) => {
  try {
    return await waitUntilSettled(first, remote, limits);
  } catch (error) {
    const { code } = RialtoError.from(error);
    if (code === 'remote_timeout' || code === 'canceled') remote.cancel(first.taskId).catch(() => undefined);
    throw error;
  }
};

/** Waits, and fails with `canceled` as soon as the signal aborts. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await wait(ms, undefined, { signal }).catch((cause: unknown) => {
    throw new RialtoError('canceled', { cause });
  });
}

async function look(taskId: string, remote: RemoteTask, deadline: Deadline, signal: AbortSignal): Promise<BridgeReply> {
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

/** A look that got no answer at all says nothing about the task: it is taken again, unlike a refusal. */
function pauseAfterMiss(error: RialtoError, misses: number, leftMs: number): number | undefined {
  const gotNoAnswer =
    leftMs > 0 &&
    (error.code === 'remote_timeout' || (error.code === 'remote_transport' && error.data?.httpStatus === undefined));
  if (gotNoAnswer) return misses < maxMisses ? Math.min(leftMs, 100 * 2 ** misses) : undefined;
  // Only a far Retry-After needs the wall clock; to a look its seconds form is enough.
  return nextTryAfter({ kind: 'read' }, error, { tries: misses, leftMs, now: 0 });
}

function ofTask(reply: BridgeReply, taskId: string): BridgeReply {
  if (reply.kind === 'task' && reply.taskId === taskId) return reply;
  throw new RialtoError('remote_invalid_response', {
    message: 'the remote agent answered with another task',
    data: { reason: 'another task' },
  });
}

/** The same error, telling which remote task it was about. */
function withTaskId(error: RialtoError, taskId: string): RialtoError {
  const { code, message, hint, violations, data } = error;
  return new RialtoError(code, { message, hint, violations, data: { ...data, taskId }, cause: error.cause ?? error });
}
