import type { JsonObject } from '../../kernel/json.js';
import type { StreamResponse, TaskArtifactUpdateEvent } from '../../protocol/a2a/model.js';
import { terminalStates, type TaskState } from '../../protocol/a2a/states.js';
import { taskView, type NumberedEvent, type StoredTask } from '../task.types.js';

/*
 * The events of one commit are one row of the log. A task that ends in the commit that creates it never changes again,
 * so its events need not repeat the content of its row (docs/decisions/0005). Pure.
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

/** The stored body of an event: the event, or only the part of it that the row of its task does not hold. */
export type StoredBody = StreamResponse | { readonly besideTask: Remainder };

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
function bodyToStore(task: StoredTask, { body }: NumberedEvent, isNew: boolean): StoredBody {
  const besideTask = isNew && terminalStates.has(task.state) ? remainderOf(task, body) : undefined;
  return besideTask ? { besideTask } : body;
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

/** Restores an event from its stored body and the row of its task. */
export function bodyFromStore(task: StoredTask, body: StoredBody): StreamResponse {
  if (!('besideTask' in body)) return body;
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
