import type { JsonObject } from '../../kernel/json.js';
import { withArtifact } from '../../protocol/a2a/artifacts.js';
import type { Artifact, Message, StreamResponse, TaskArtifactUpdateEvent } from '../../protocol/a2a/model.js';
import { terminalStates, type TaskState } from '../../protocol/a2a/states.js';
import { taskView, type NumberedEvent, type StoredTask } from '../task.types.js';

/*
 * The events of one commit are one row of the log, and the log holds the content of its task: its messages and
 * artifacts. Two kinds of task have content in their row. One that ended in the commit that created it never changes
 * again, so its row has all content, and its events refer to it. The row of one with a long log has the content up to
 * `folded_seq`, so that a reader need not read the whole log (docs/decisions/0005). Pure.
 */

/** The content of an event that the row of its task does not have. Times are ISO 8601. */
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

/** An event with the messages that the history gained with it. */
interface EventWithMessages {
  readonly event: StreamResponse;
  readonly messages: readonly Message[];
}

/**
 * The stored body of an event: the event, alone or with the messages of its commit, or only the part of it that the row
 * of its task does not hold.
 */
export type StoredBody = StreamResponse | EventWithMessages | { readonly besideTask: Remainder };

/** The large members of a task, which its log has too. */
export type TaskContent = Pick<StoredTask, 'history' | 'artifacts'>;

/** A row of the log: the events of one commit, in order. */
export interface EventsRow {
  /** Number of the first event; null for a single event. */
  readonly first_seq: number | null;
  /** Number of the last event. */
  readonly seq: number;
  /** A single event, or a list of events. */
  readonly body: StoredBody | readonly StoredBody[];
}

/**
 * The row for the events of a commit, at least one. @param task as the commit leaves it. @param isNew true when the
 * commit creates the task.
 */
export function rowToStore(task: StoredTask, events: readonly NumberedEvent[], isNew: boolean): EventsRow {
  const bodies = events.map((event) => bodyToStore(task, event, isNew));
  const [{ seq: first }, { seq }] = [events[0]!, events.at(-1)!];
  return bodies.length === 1 ? { first_seq: null, seq, body: bodies[0]! } : { first_seq: first, seq, body: bodies };
}

/** The numbered bodies of rows, in order, as far as their numbers are above `after` and at most `until`. */
export function eventsOfRows(
  rows: readonly EventsRow[],
  { after = 0, until = Infinity }: { after?: number; until?: number } = {},
): { seq: number; body: StoredBody }[] {
  return rows
    .flatMap(({ first_seq: first, seq, body }) =>
      first === null
        ? [{ seq, body: body as StoredBody }]
        : (body as readonly StoredBody[]).map((one, index) => ({ seq: first + index, body: one })),
    )
    .filter(({ seq }) => seq > after && seq <= until);
}

/**
 * The body to store for an event. @param task as the commit leaves it. @param isNew true when the commit creates the
 * task.
 */
function bodyToStore(task: StoredTask, { body, messages }: NumberedEvent, isNew: boolean): StoredBody {
  const besideTask = isNew && terminalStates.has(task.state) ? remainderOf(task, body) : undefined;
  if (besideTask) return { besideTask };
  return messages ? { event: body, messages } : body;
}

/** The content of a task after the next events of its log. */
export function contentAfter(before: TaskContent, events: readonly StoredBody[]): TaskContent {
  const history: Message[] = [...before.history];
  let artifacts: readonly Artifact[] = before.artifacts;
  for (const stored of events) {
    if ('besideTask' in stored) continue; // the row has its content
    if ('event' in stored) history.push(...stored.messages);
    const event = 'event' in stored ? stored.event : stored;
    if ('task' in event) history.push(...(event.task.history ?? []));
    if ('artifactUpdate' in event) artifacts = withArtifact(artifacts, event.artifactUpdate);
  }
  return { history, artifacts };
}

/**
 * The part of an event that the row lacks. Undefined when the event has a message or parts that later events replaced,
 * so that the row no longer holds them.
 */
function remainderOf({ artifacts, statusMessage }: StoredTask, body: StreamResponse): Remainder | undefined {
  if ('task' in body) return { opened: body.task.status.timestamp! };
  if ('artifactUpdate' in body) {
    const { artifact, append, lastChunk, metadata } = body.artifactUpdate;
    return artifacts.includes(artifact) ? { artifactId: artifact.artifactId, append, lastChunk, metadata } : undefined;
  }
  if (!('statusUpdate' in body)) return undefined;
  const { status, metadata } = body.statusUpdate;
  const { state, timestamp, message } = status;
  if (message === undefined) return { state, timestamp, metadata };
  return message === statusMessage ? { state, timestamp, said: true, metadata } : undefined;
}

/**
 * Restores an event from its stored body and the row of its task. Undefined when it refers to a task that is gone: its
 * log is gone too.
 */
export function bodyFromStore(task: StoredTask | undefined, body: StoredBody): StreamResponse | undefined {
  if ('event' in body) return body.event;
  if (!('besideTask' in body)) return body;
  if (!task) return undefined;
  const { besideTask } = body;
  const ids = { taskId: task.id as string, contextId: task.contextId };
  if ('opened' in besideTask) {
    const began = {
      state: 'TASK_STATE_SUBMITTED',
      statusMessage: undefined,
      statusAt: Date.parse(besideTask.opened),
    } as const;
    return { task: taskView({ ...task, ...began, history: task.history.slice(0, 1), artifacts: [] }) };
  }
  if ('artifactId' in besideTask) {
    const { artifactId, ...more } = besideTask;
    return {
      artifactUpdate: { ...ids, artifact: task.artifacts.find((one) => one.artifactId === artifactId)!, ...more },
    };
  }
  const { state, timestamp, said, metadata } = besideTask;
  const status = { state, ...(said && { message: task.statusMessage }), timestamp };
  return { statusUpdate: { ...ids, status, ...(metadata && { metadata }) } };
}
