import { RialtoError } from '../../kernel/errors.js';
import type { TaskId } from '../../kernel/ids.js';
import type { TrustTier } from '../../kernel/trust.js';
import { withArtifact } from '../../protocol/a2a/artifacts.js';
import type { Artifact, Message } from '../../protocol/a2a/model.js';
import { withoutSecretMetadata, withoutSecrets } from '../../protocol/a2a/secret-members.js';
import { interruptedStates, terminalStates, wordOf, type TaskState } from '../../protocol/a2a/states.js';
import type { Said, TaskUpdate } from '../executor.port.js';
import { weightOf } from '../../kernel/json.js';
import { taskView, type NumberedEvent, type StoredTask } from '../task.types.js';

/*
 * The state machine of tasks (v1.0 section 4.1.3), pure: a task and an update give the next task and its event. Only
 * the tasks module calls it; the database refuses a change that conflicts with one of another process.
 */

/** Inputs of a step beside its arguments. */
export interface Step {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly newId: () => string;
  /** Most characters that the artifacts of a task may hold; its messages may hold as many. */
  readonly maxWeight: number;
}

export interface Moved {
  readonly task: StoredTask;
  readonly event: NumberedEvent;
}

const any: readonly TaskState[] = [
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
];

/** True when state `to` may follow `from`: `submitted` is only the first state, and no state follows a terminal one. */
export function mayFollow(from: TaskState, to: TaskState): boolean {
  return !terminalStates.has(from) && any.includes(to);
}

/** Creates a task with its first event, which holds the task itself. */
export function openTask(
  seed: Pick<
    StoredTask,
    'id' | 'orgId' | 'agentId' | 'agentName' | 'contextId' | 'principal' | 'depth' | 'lineage' | 'metadata'
  > &
    Partial<Pick<StoredTask, 'trustTier'>>,
  message: Message,
  { now }: Step,
): Moved {
  const { metadata } = seed;
  const task: StoredTask = {
    state: 'TASK_STATE_SUBMITTED',
    statusMessage: undefined,
    statusAt: now,
    history: [ofTask(seed, message)],
    artifacts: [],
    foldedSeq: 0,
    trustTier: 0,
    seq: 1,
    epoch: 0,
    memo: undefined,
    ...seed,
    metadata: metadata && withoutSecrets(metadata),
  };
  return { task, event: { seq: 1, body: { task: taskView(task) } } };
}

/**
 * Adds the caller's next message to a task that waits for it; the task becomes working, and its tier falls to that of
 * the message. Throws `unsupported_operation`.
 */
export function resumeTask(task: StoredTask, message: Message, step: Step, tier: TrustTier = 0): Moved {
  requireNotEnded(task);
  if (!interruptedStates.has(task.state)) throw notResumable(task, 'the task is not waiting for input');
  const messages = [...spokenBy(task), ofTask(task, message)];
  const history = [...task.history, ...messages];
  requireRoom(task.history, messages, history, step);
  const trustTier = tier < task.trustTier ? tier : task.trustTier;
  const resumed = { ...task, history, trustTier, statusMessage: undefined };
  return withMessages(moveTo(resumed, 'TASK_STATE_WORKING', undefined, step), messages);
}

/** Throws `unsupported_operation` for a task that no message can continue. */
export function requireNotEnded(task: StoredTask): void {
  if (terminalStates.has(task.state))
    throw notResumable(task, `the task is ${wordOf(task.state)}; send a new message in its context`);
}

function notResumable({ id, state }: StoredTask, message: string): RialtoError {
  return new RialtoError('unsupported_operation', { message, data: { taskId: id, state: wordOf(state) } });
}

/**
 * Applies an update of an executor. Throws `unsupported_operation` when the task has ended or the state may not follow,
 * and `too_large`.
 */
export function applyUpdate(
  task: StoredTask,
  update: Extract<TaskUpdate, { status: unknown } | { artifact: unknown }>,
  step: Step,
): Moved {
  if (terminalStates.has(task.state)) throw endedError(task);
  if ('artifact' in update) return addArtifact(task, update, step);
  const { state, message } = update.status;
  if (!mayFollow(task.state, state)) {
    throw new RialtoError('unsupported_operation', {
      message: `${wordOf(state)} may not follow ${wordOf(task.state)}`,
      data: { taskId: task.id, state: wordOf(task.state) },
    });
  }
  const messages = spokenBy(task);
  const history = messages.length > 0 ? [...task.history, ...messages] : task.history;
  const status = message && agentMessage(task, message, step);
  const moved = withMessages(moveTo({ ...task, history, statusMessage: status }, state, status, step), messages);
  return update.metadata ? withMetadata(moved, update.metadata) : moved;
}

/**
 * Cancels a task. Returns undefined when it is canceled already; throws `task_not_cancelable` for any other terminal
 * state.
 */
export function cancelTask(task: StoredTask, step: Step): Moved | undefined {
  if (task.state === 'TASK_STATE_CANCELED') return undefined;
  if (terminalStates.has(task.state)) {
    throw new RialtoError('task_not_cancelable', {
      message: `the task is ${wordOf(task.state)}`,
      data: { taskId: task.id, state: wordOf(task.state) },
    });
  }
  return applyUpdate(task, { status: { state: 'TASK_STATE_CANCELED' } }, step);
}

function addArtifact(task: StoredTask, update: Extract<TaskUpdate, { artifact: unknown }>, step: Step): Moved {
  const { append, lastChunk, metadata } = update;
  const artifact: Artifact = { ...update.artifact, artifactId: update.artifact.artifactId ?? step.newId() };
  const artifactUpdate = {
    taskId: task.id,
    contextId: task.contextId,
    artifact,
    ...(append !== undefined && { append }),
    ...(lastChunk !== undefined && { lastChunk }),
    ...(metadata && { metadata }),
  };
  const artifacts = withArtifact(task.artifacts, artifactUpdate);
  requireRoom(task.artifacts, artifact, artifacts, step);
  const next: StoredTask = { ...task, artifacts, seq: task.seq + 1 };
  return { task: next, event: { seq: next.seq, body: { artifactUpdate } } };
}

/** Known weights of lists, so that a task that grows in small pieces is not weighed completely for each piece. */
const weights = new WeakMap<readonly unknown[], number>();

/**
 * Throws `too_large` when a list of a task would exceed `maxWeight`. The limit exists because each read of a task loads
 * all of it.
 */
function requireRoom(before: readonly unknown[], more: unknown, after: readonly unknown[], { maxWeight }: Step): void {
  let weight = (weights.get(before) ?? weightOf(before)) + weightOf(more);
  if (weight > maxWeight) weight = weightOf(after); // replaced items no longer count
  if (weight > maxWeight)
    throw new RialtoError('too_large', {
      message: `the artifacts of a task, and its messages, may hold ${maxWeight} characters each`,
    });
  weights.set(after, weight);
}

function moveTo(task: StoredTask, state: TaskState, message: Message | undefined, { now }: Step): Moved {
  const statusAt = Math.max(now, task.statusAt);
  const seq = task.seq + 1;
  const next: StoredTask = { ...task, state, statusAt, seq };
  const status = { state, ...(message && { message }), timestamp: new Date(statusAt).toISOString() };
  const statusUpdate = { taskId: task.id as string, contextId: task.contextId, status };
  return { task: next, event: { seq: next.seq, body: { statusUpdate } } };
}

function withMetadata({ task, event }: Moved, metadata: NonNullable<StoredTask['metadata']>): Moved {
  if (!('statusUpdate' in event.body)) return { task, event };
  return { task, event: { ...event, body: { statusUpdate: { ...event.body.statusUpdate, metadata } } } };
}

function withMessages({ task, event }: Moved, messages: readonly Message[]): Moved {
  return messages.length > 0 ? { task, event: { ...event, messages } } : { task, event };
}

/** The message of the current status, which the next status moves into the history. */
function spokenBy({ statusMessage }: StoredTask): Message[] {
  return statusMessage ? [statusMessage] : [];
}

/** A message of the caller as the task stores it. */
function ofTask({ id: taskId, contextId }: Pick<StoredTask, 'id' | 'contextId'>, message: Message): Message {
  return Object.assign({}, withoutSecretMetadata(message), { taskId, contextId });
}

function agentMessage({ id, contextId }: { id: TaskId; contextId: string }, content: Said, { newId }: Step): Message {
  return { messageId: content.messageId ?? newId(), contextId, taskId: id, role: 'ROLE_AGENT', ...content };
}

function endedError({ id, state }: StoredTask): RialtoError {
  return new RialtoError('unsupported_operation', {
    message: `the task is ${wordOf(state)}`,
    data: { taskId: id, state: wordOf(state) },
  });
}
