import { isDeepStrictEqual } from 'node:util';
import type { JsonObject } from '../../kernel/json.js';
import { withArtifact } from '../../protocol/a2a/artifacts.js';
import type { Message, Part, StreamResponse, TaskArtifactUpdateEvent, TaskStatus } from '../../protocol/a2a/model.js';
import type { TaskState } from '../../protocol/a2a/states.js';
import { taskView, type NumberedEvent, type StoredTask } from '../task.types.js';

/*
 * The log holds the content of its task: the events of one commit are one row. They are stored without the ids of the
 * task, and with a reference in place of parts and times that the row already has (docs/decisions/0012). The row of a
 * task with a long log has a copy of the content up to `folded_seq`, so that a reader need not read all of it. Pure.
 */

/** The ids that the events of a task are stored without. */
export type TaskIds = Pick<StoredTask, 'id' | 'contextId'>;

/** Earlier versions stored this of an event of a task that ended in its first commit; the rest is in its row. */
type Remainder =
  | { readonly opened: string }
  | ({ readonly artifactId: string } & Omit<TaskArtifactUpdateEvent, 'taskId' | 'contextId' | 'artifact'>)
  | {
      readonly state: TaskState;
      readonly timestamp?: string;
      /** The message of the status is the status message of the row. */
      readonly said?: true;
      readonly metadata?: JsonObject;
    };

/** The body of an event as it is stored: alone, or with the messages that the history gained with it. */
export type StoredBody =
  | StreamResponse
  | { readonly event: StreamResponse; readonly messages: readonly Message[] }
  | { readonly besideTask: Remainder };

/** An event as it is read: complete, or, from an earlier version, without the content that the row of its task has. */
export type LoggedEvent = NumberedEvent | { readonly seq: number; readonly besideTask: Remainder };

/** The members of a task that its log has too. */
export type TaskContent = Pick<StoredTask, 'history' | 'artifacts' | 'statusMessage'>;

/** A row of the log: the events of one commit, in order. */
export interface EventsRow {
  /** Number of the first event; null for a single event. */
  readonly first_seq: number | null;
  /** Number of the last event. */
  readonly seq: number;
  /** A single event, or a list of events. */
  readonly body: StoredBody | readonly StoredBody[];
}

/** Returns the row for the events of a commit, at least one. */
export function rowToStore(task: TaskIds, events: readonly NumberedEvent[]): EventsRow {
  const compaction = compactionFor(task);
  const bodies = events.map((event) => storedBody(event, compaction));
  const [{ seq: first }, { seq }] = [events[0]!, events.at(-1)!];
  return bodies.length === 1 ? { first_seq: null, seq, body: bodies[0]! } : { first_seq: first, seq, body: bodies };
}

function storedBody({ body, messages }: NumberedEvent, compaction: Rewriting): StoredBody {
  const event = rewritten(body, compaction);
  return messages ? { event, messages: messages.map((message) => rewrittenMessage(message, compaction)) } : event;
}

/** The events of rows of one task, in order, as far as their numbers are above `after` and at most `until`. */
export function eventsOfRows(
  task: TaskIds,
  rows: readonly EventsRow[],
  { after = 0, until = Infinity }: { after?: number; until?: number } = {},
): LoggedEvent[] {
  const events = rows.flatMap(({ first_seq: first, seq, body }) => {
    const restoration = restorationFor(task);
    if (first === null) return [loggedEvent(seq, body as StoredBody, restoration)];
    return (body as readonly StoredBody[]).map((stored, index) => loggedEvent(first + index, stored, restoration));
  });
  return events.filter(({ seq }) => seq > after && seq <= until);
}

function loggedEvent(seq: number, stored: StoredBody, restoration: Rewriting): LoggedEvent {
  if ('besideTask' in stored) return { seq, besideTask: stored.besideTask };
  if (!('event' in stored)) return { seq, body: rewritten(stored, restoration) };
  const body = rewritten(stored.event, restoration);
  return { seq, body, messages: stored.messages.map((message) => rewrittenMessage(message, restoration)) };
}

/** The content of a task after the next events of its log. */
export function contentAfter(before: TaskContent, events: readonly LoggedEvent[]): TaskContent {
  const history: Message[] = [...before.history];
  let { artifacts, statusMessage } = before;
  for (const event of events) {
    if ('besideTask' in event) continue; // the row has its content
    const { body, messages = [] } = event;
    history.push(...messages);
    if ('task' in body) history.push(...(body.task.history ?? []));
    if ('artifactUpdate' in body) artifacts = withArtifact(artifacts, body.artifactUpdate);
    if ('statusUpdate' in body) statusMessage = body.statusUpdate.status.message;
  }
  return { history, artifacts, statusMessage };
}

/**
 * Completes an event with the row of its task. Undefined when it refers to a task that is gone: its log is gone too.
 */
export function completedEvent(task: StoredTask | undefined, event: LoggedEvent): NumberedEvent | undefined {
  if (!('besideTask' in event)) return event;
  return task && { seq: event.seq, body: bodyOf(task, event.besideTask) };
}

function bodyOf(task: StoredTask, rest: Remainder): StreamResponse {
  const ids = { taskId: task.id as string, contextId: task.contextId };
  if ('opened' in rest) {
    const began = {
      state: 'TASK_STATE_SUBMITTED',
      statusMessage: undefined,
      statusAt: Date.parse(rest.opened),
    } as const;
    return { task: taskView({ ...task, ...began, history: task.history.slice(0, 1), artifacts: [] }) };
  }
  if ('artifactId' in rest) {
    const { artifactId, ...more } = rest;
    return {
      artifactUpdate: { ...ids, artifact: task.artifacts.find((one) => one.artifactId === artifactId)!, ...more },
    };
  }
  const { state, timestamp, said, metadata } = rest;
  const status = { state, ...(said && { message: task.statusMessage }), timestamp };
  return { statusUpdate: { ...ids, status, ...(metadata && { metadata }) } };
}

/** How the members of the events of one row change when they are stored or read. Called in the order of the events. */
interface Rewriting {
  /** @param name the member that holds the id of the task. */
  readonly ids: <Value extends object>(value: Value, name: 'id' | 'taskId') => Value;
  /** A stored list may be the position of an equal list before it. */
  readonly parts: (parts: Part[]) => Part[];
  /** A stored status has no time when it is that of the status before it. */
  readonly timestamp: (timestamp: string | undefined) => string | undefined;
}

/** Most lists of parts that a list is compared with: a row may have a thousand. */
const compared = 4;

function compactionFor({ id, contextId }: TaskIds): Rewriting {
  const lists: Part[][] = [];
  let last: string | undefined;
  return {
    ids: (value, name) => {
      const given = value as Record<string, unknown>;
      return {
        ...value,
        ...(given[name] === id && { [name]: undefined }),
        ...(given.contextId === contextId && { contextId: undefined }),
      };
    },
    parts: (parts) => {
      const recent = lists.slice(-compared);
      const known = recent.findIndex((list) => isDeepStrictEqual(list, parts));
      if (known >= 0) return (lists.length - recent.length + known) as unknown as Part[];
      lists.push(parts);
      return parts;
    },
    timestamp: (timestamp) => {
      if (timestamp === last) return undefined;
      return (last = timestamp);
    },
  };
}

function restorationFor({ id, contextId }: TaskIds): Rewriting {
  const lists: Part[][] = [];
  let last: string | undefined;
  return {
    ids: (value, name) => ({ [name]: id, contextId, ...value }),
    parts: (parts) => {
      if (typeof parts === 'number') return lists[parts]!;
      lists.push(parts);
      return parts;
    },
    timestamp: (timestamp) => (last = timestamp ?? last),
  };
}

function rewritten(body: StreamResponse, rewriting: Rewriting): StreamResponse {
  if ('task' in body) {
    const { status, history } = body.task;
    return {
      task: {
        ...rewriting.ids(body.task, 'id'),
        status: rewrittenStatus(status, rewriting),
        ...(history && { history: history.map((message) => rewrittenMessage(message, rewriting)) }),
      },
    };
  }
  if ('statusUpdate' in body) {
    const update = rewriting.ids(body.statusUpdate, 'taskId');
    return { statusUpdate: { ...update, status: rewrittenStatus(update.status, rewriting) } };
  }
  if (!('artifactUpdate' in body)) return body;
  const update = rewriting.ids(body.artifactUpdate, 'taskId');
  const artifact = { ...update.artifact };
  if ('parts' in artifact) artifact.parts = rewriting.parts(artifact.parts);
  return { artifactUpdate: { ...update, artifact } };
}

function rewrittenStatus(status: TaskStatus, rewriting: Rewriting): TaskStatus {
  const { message } = status;
  const timestamp = rewriting.timestamp(status.timestamp);
  return { ...status, timestamp, ...(message && { message: rewrittenMessage(message, rewriting) }) };
}

function rewrittenMessage(message: Message, { ids, parts }: Rewriting): Message {
  return { ...ids(message, 'taskId'), parts: parts(message.parts) };
}
