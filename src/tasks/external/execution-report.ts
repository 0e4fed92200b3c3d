import { RialtoError } from '../../kernel/errors.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { redact } from '../../platform/secrets/redact.js';
import { pausedMessage } from '../../protocol/a2a/conversation/paused.js';
import { interruptedStates, wordOf } from '../../protocol/a2a/states.js';
import type { ExecutionEvent } from './execution-events.js';
import type { Said, TaskUpdate } from '../executor.port.js';
import { applyUpdate, type Step } from '../lifecycle/task.lifecycle.js';
import { silenceMs } from '../storage/execution-times.js';
import { isEnded, type NumberedEvent, type StoredTask } from '../task.types.js';

/*
 * Applies reports from external workers to tasks, pure. The ids of applied events are rows that are committed with the
 * task: a repeated event changes nothing, in any process and however late it arrives.
 */

type Update = Extract<TaskUpdate, { status: unknown } | { artifact: unknown }>;

/** The memo of a task with external work. */
type ExecutionMemo = {
  /** Ids of events that an earlier version applied; newer ids are rows. */
  readonly seen?: string[];
  /** The last turn that the service is known to have received. */
  readonly reached?: number;
  /** When it was known, in milliseconds since the epoch. Earlier versions did not store it. */
  readonly reachedAt?: number;
};

function memoOf({ memo }: StoredTask): ExecutionMemo {
  return (memo ?? {}) as ExecutionMemo;
}

/** Number of messages that the caller has sent to the task, which is the number of the current turn. */
export function turnOf({ history }: StoredTask): number {
  return history.filter(({ role }) => role === 'ROLE_USER').length;
}

/** True when the service is known to have received the newest message. */
export function hasReached(task: StoredTask): boolean {
  return memoOf(task).reached === turnOf(task);
}

/**
 * True when the service got the message less than five minutes ago, so its silence is no end yet. The task can be due
 * nevertheless: a report that was committed while the answer of the service arrived does not know that the message did.
 */
export function isWokenEarly(task: StoredTask, now: number): boolean {
  const silent = now - (memoOf(task).reachedAt ?? 0);
  return silent >= 0 && silent < silenceMs;
}

/**
 * The events that the task has not applied yet, each once.
 * @param applied ids of applied events.
 */
export function unseen(
  task: StoredTask,
  events: readonly ExecutionEvent[],
  applied: readonly string[],
): ExecutionEvent[] {
  const seen = new Set([...(memoOf(task).seen ?? []), ...applied]);
  return events.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/**
 * Applies new events to a task. Throws `conflict` when it has ended, or waits for its caller.
 * @param reached the turn that the service is known to have received. The sender of the turn passes it, because a
 * report may belong to an older turn.
 */
export function applyReport(
  before: StoredTask,
  { events, reached }: { events: readonly ExecutionEvent[]; reached?: number },
  step: Step,
): { task: StoredTask; events: NumberedEvent[] } {
  let task = before;
  const numbered: NumberedEvent[] = [];
  for (const event of events) {
    requireOpen(task, event);
    for (const update of updatesOf(event, task)) {
      const moved = applyUpdate(task, update, step);
      task = moved.task;
      numbered.push(moved.event);
    }
  }
  return {
    task: reached === undefined ? task : { ...task, memo: remembering(task, reached, step.now) },
    events: numbered,
  };
}

/** The memo of a task after its service has received this turn. */
export function remembering(task: StoredTask, reached: number, reachedAt: number): Json {
  return { ...memoOf(task), reached, reachedAt };
}

function requireOpen(task: StoredTask, { type }: ExecutionEvent): void {
  // Progress that arrives after the question that followed it must not remove the question.
  const isOvertaken = (type === 'progress' || type === 'pause') && interruptedStates.has(task.state);
  if (!isEnded(task) && !isOvertaken) return;
  const state = wordOf(task.state);
  throw new RialtoError('conflict', { message: `the task is ${state}`, data: { taskId: task.id, state } });
}

/** The updates of an event. The first event of a submitted task also sets it to working. */
function updatesOf(event: ExecutionEvent, { state }: StoredTask): Update[] {
  const updates = meaningOf(event);
  const isWorking = event.type === 'progress' || event.type === 'pause';
  const isFirst = state === 'TASK_STATE_SUBMITTED' && !isWorking && updates.length > 0;
  return isFirst ? [{ status: { state: 'TASK_STATE_WORKING' } }, ...updates] : updates;
}

function meaningOf(event: ExecutionEvent): Update[] {
  switch (event.type) {
    case 'progress':
      return [{ status: { state: 'TASK_STATE_WORKING', message: reportedMessage(event) } }];
    case 'pause': {
      const message = reportedMessage(event) ?? { parts: [{ text: 'The work is paused.' }] };
      return [{ status: { state: 'TASK_STATE_WORKING', message: pausedMessage(message) } }];
    }
    case 'reject':
      return [{ status: { state: 'TASK_STATE_REJECTED', message: reasonIn(event) } }];
    case 'artifact':
      return [{ artifact: artifactOf(event.artifact), append: event.append, lastChunk: event.lastChunk }];
    case 'ask':
      return [{ status: { state: 'TASK_STATE_INPUT_REQUIRED', message: questionOf(event) } }];
    case 'complete':
      return [
        ...(event.artifacts ?? []).map((artifact) => ({ artifact: artifactOf(artifact), lastChunk: true })),
        { status: { state: 'TASK_STATE_COMPLETED', message: reportedMessage(event) } },
      ];
    case 'fail':
      return [{ status: { state: 'TASK_STATE_FAILED', message: reasonIn(event) } }];
    case 'heartbeat':
      return [];
  }
}

type ReportedText = Pick<Extract<ExecutionEvent, { type: 'progress' }>, 'text' | 'message'>;
type Artifact = Extract<ExecutionEvent, { type: 'artifact' }>['artifact'];

function reportedMessage({ text, message }: ReportedText): Said | undefined {
  if (message) return { parts: message.parts, ...(message.metadata && { metadata: message.metadata as JsonObject }) };
  return text === undefined ? undefined : { parts: [{ text }] };
}

/** The reason of a failure or rejection, redacted: error texts of programs often contain credentials (AN-22). */
function reasonIn(event: Extract<ExecutionEvent, { type: 'fail' | 'reject' }>): Said | undefined {
  const error = 'error' in event ? event.error : undefined;
  const reason = reportedMessage({ ...event, text: error ?? event.text });
  const redacted = (part: Said['parts'][number]) =>
    part.text === undefined ? part : { ...part, text: redact(part.text) as string };
  return reason && { ...reason, parts: reason.parts.map(redacted) };
}

/** A question; its metadata says how it may be answered (RY-28). */
function questionOf(event: Extract<ExecutionEvent, { type: 'ask' }>): Said {
  const { kind, choices, detail } = event;
  const metadata = {
    ...event.message?.metadata,
    ...(kind !== undefined && { kind }),
    ...(choices && { choices }),
    ...(detail !== undefined && { detail }),
  } as JsonObject;
  return { ...reportedMessage(event)!, ...(Object.keys(metadata).length > 0 && { metadata }) };
}

function artifactOf({ metadata, ...artifact }: Artifact): Extract<Update, { artifact: unknown }>['artifact'] {
  return { ...artifact, ...(metadata && { metadata: metadata as JsonObject }) };
}
