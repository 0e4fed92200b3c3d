import { RialtoError } from '../../kernel/errors.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { redact } from '../../platform/secrets/redact.js';
import { interruptedStates, wordOf } from '../../protocol/a2a/states.js';
import type { ExecutionEvent } from './execution-events.js';
import type { Said, TaskUpdate } from '../executor.port.js';
import { applyUpdate, type Step } from '../lifecycle/task.lifecycle.js';
import { isEnded, type NumberedEvent, type StoredTask } from '../task.types.js';

/*
 * What a report from outside makes of a task, pure. That an event was taken is part of the task itself, so both are committed
 * together and a repeated event changes nothing, in whichever process and however late it comes.
 */

type Update = Extract<TaskUpdate, { status: unknown } | { artifact: unknown }>;

/** What tasks remember whose work is done outside. */
interface ExecutionMemo {
  /** Ids of events that were taken, newest last. */
  readonly seen?: readonly string[];
  /** The last turn that the service is known to have got. */
  readonly reached?: number;
}

/** Events that a task remembers; who repeats an older one is very late. */
const maxSeen = 1_000;

function memoOf({ memo }: StoredTask): ExecutionMemo {
  return (memo ?? {}) as ExecutionMemo;
}

/** How many messages its caller has sent to the task: the number of what is being worked on now. */
export function turnOf({ history }: StoredTask): number {
  return history.filter(({ role }) => role === 'ROLE_USER').length;
}

/** True when the service is known to have got the newest message. */
export function hasReached(task: StoredTask): boolean {
  return memoOf(task).reached === turnOf(task);
}

/** The events that the task has not taken yet, each once. */
export function unseen(task: StoredTask, events: readonly ExecutionEvent[]): ExecutionEvent[] {
  const seen = new Set(memoOf(task).seen);
  return events.filter(({ id }) => !seen.has(id) && seen.add(id));
}

/**
 * The task after events that it has not taken yet. Throws `conflict` when it has ended, or waits for its caller.
 * @param reached the turn that the service is known to have got; said by whoever gave it, for a report may be of an older one.
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
  return { task: { ...task, memo: remembering(before, { events, reached }) }, events: numbered };
}

/** What the task remembers from now on. A heartbeat may come as often as it likes: it changes nothing, so it is forgotten. */
export function remembering(
  task: StoredTask,
  { events = [], reached = memoOf(task).reached }: { events?: readonly ExecutionEvent[]; reached?: number },
): Json {
  const ids = events.filter(({ type }) => type !== 'heartbeat').map(({ id }) => id);
  const seen = [...(memoOf(task).seen ?? []), ...ids].slice(-maxSeen);
  return { seen, ...(reached !== undefined && { reached }) };
}

function requireOpen(task: StoredTask, { type }: ExecutionEvent): void {
  // Progress that was overtaken by the question after it must not take the question away.
  const waits = type === 'progress' && interruptedStates.has(task.state);
  if (!isEnded(task) && !waits) return;
  const state = wordOf(task.state);
  throw new RialtoError('conflict', { message: `the task is ${state}`, data: { taskId: task.id, state } });
}

/** Whatever is said first of a submitted task, its work has begun. */
function updatesOf(event: ExecutionEvent, { state }: StoredTask): Update[] {
  const updates = meaningOf(event);
  const isFirst = state === 'TASK_STATE_SUBMITTED' && event.type !== 'progress' && updates.length > 0;
  return isFirst ? [{ status: { state: 'TASK_STATE_WORKING' } }, ...updates] : updates;
}

function meaningOf(event: ExecutionEvent): Update[] {
  switch (event.type) {
    case 'progress':
      return [{ status: { state: 'TASK_STATE_WORKING', message: messageOf(event) } }];
    case 'artifact':
      return [{ artifact: artifactOf(event.artifact), append: event.append, lastChunk: event.lastChunk }];
    case 'ask':
      return [{ status: { state: 'TASK_STATE_INPUT_REQUIRED', message: questionOf(event) } }];
    case 'complete':
      return [
        ...(event.artifacts ?? []).map((artifact) => ({ artifact: artifactOf(artifact), lastChunk: true })),
        { status: { state: 'TASK_STATE_COMPLETED', message: messageOf(event) } },
      ];
    case 'fail':
      return [{ status: { state: 'TASK_STATE_FAILED', message: reasonIn(event) } }];
    case 'heartbeat':
      return [];
  }
}

type ReportedText = Pick<Extract<ExecutionEvent, { type: 'progress' }>, 'text' | 'message'>;
type Artifact = Extract<ExecutionEvent, { type: 'artifact' }>['artifact'];

function messageOf({ text, message }: ReportedText): Said | undefined {
  if (message) return { parts: message.parts, ...(message.metadata && { metadata: message.metadata as JsonObject }) };
  return text === undefined ? undefined : { parts: [{ text }] };
}

/** Why the work failed: an error of a program, in which credentials like to stand (AN-22). */
function reasonIn(event: Extract<ExecutionEvent, { type: 'fail' }>): Said | undefined {
  const said = messageOf({ ...event, text: event.error ?? event.text });
  const cleaned = (part: Said['parts'][number]) =>
    part.text === undefined ? part : { ...part, text: redact(part.text) as string };
  return said && { ...said, parts: said.parts.map(cleaned) };
}

/** A question, with how it may be answered in its metadata (RY-28). */
function questionOf(event: Extract<ExecutionEvent, { type: 'ask' }>): Said {
  const { kind, choices, detail } = event;
  const metadata = {
    ...event.message?.metadata,
    ...(kind !== undefined && { kind }),
    ...(choices && { choices }),
    ...(detail !== undefined && { detail }),
  } as JsonObject;
  return { ...messageOf(event)!, ...(Object.keys(metadata).length > 0 && { metadata }) };
}

function artifactOf({ metadata, ...artifact }: Artifact): Extract<Update, { artifact: unknown }>['artifact'] {
  return { ...artifact, ...(metadata && { metadata: metadata as JsonObject }) };
}
