/**
 * All observations of a run, from callers, servers and rows. The checker reads it. Times are milliseconds since the
 * epoch, on one machine.
 */
export interface History {
  readonly sends: Send[];
  readonly sightings: Sighting[];
  readonly streams: StreamSeen[];
  readonly ends: EndCall[];
  readonly answers: AnswerCall[];
  readonly leases: Lease[];
  readonly reports: Report[];
  readonly remoteSends: RemoteSend[];
  readonly posts: Post[];
  readonly faults: Fault[];
  /** Acts that must be refused or have no effect, with their outcomes. */
  readonly forbidden: Forbidden[];
  /** Texts that an org received or that a log contains. They must not contain secrets of another org. */
  readonly texts: Told[];
  /** Texts that only one org may receive. The org `none` means that no answer and no log may contain the text. */
  readonly canaries: { readonly org: string; readonly text: string }[];
  /** Measured values with an upper limit: delays, lease ages, connections. */
  readonly measures: Measure[];
  rows: Rows;
}

/** One attempt of one logical send. Attempts of the same send share key and payload. */
export interface Send {
  readonly org: string;
  readonly agent: string;
  readonly key?: string;
  readonly payload: string;
  readonly at: number;
  readonly ms: number;
  /** HTTP status; absent when the connection broke. */
  readonly status?: number;
  /** True when the request was refused temporarily, with a `Retry-After`. */
  readonly mayRetry?: boolean;
  readonly taskId?: string;
  readonly errorCode?: string;
  /** True when the caller expects the agent to return the payload. */
  readonly echoes?: boolean;
}

/** A task state that an observer saw; in the order of each observer. */
export interface Sighting {
  readonly by: string;
  readonly taskId: string;
  readonly state: string;
  readonly at: number;
}

/** One connection of a reader. */
export interface StreamSeen {
  readonly taskId: string;
  /** The `Last-Event-ID` of the request. */
  readonly after?: number;
  readonly frames: readonly { readonly seq: number; readonly at: number; readonly isSnapshot: boolean }[];
}

/** A call that tries to end a task: a cancel of its caller, or a report of its worker. */
export interface EndCall {
  readonly taskId: string;
  readonly want: 'canceled' | 'completed' | 'failed';
  readonly accepted: boolean;
  /** The state in the answer of an accepted call. */
  readonly state?: string;
}

/** An answer to the question of a task. */
export interface AnswerCall {
  readonly taskId: string;
  readonly accepted: boolean;
}

/** A task that a mailbox handed out; `Report` is a report on it. */
export interface Lease {
  readonly taskId: string;
  readonly epoch: number;
  readonly at: number;
}

export interface Report {
  readonly taskId: string;
  readonly epoch: number;
  readonly at: number;
  readonly accepted: boolean;
}

/** A message that a foreign agent received. */
export interface RemoteSend {
  readonly messageId: string;
  /** The text of the caller, which identifies one logical message. */
  readonly payload: string;
  readonly at: number;
  /** Time when the answer was sent completely; absent when the connection broke before. */
  answeredAt?: number;
}

/** A webhook that a receiver got. */
export interface Post {
  readonly webhookId: string;
  readonly at: number;
  /** Time when the answer was sent. */
  endedAt?: number;
  readonly status: number;
}

export interface Fault {
  readonly kind: string;
  readonly what: string;
  readonly at: number;
  until?: number;
}

export interface Forbidden {
  readonly what: string;
  readonly happened: boolean;
}

export interface Told {
  readonly org: string;
  readonly where: string;
  readonly text: string;
}

/** A measured value, in the unit of `most`. `invariant` names the invariant that a higher value violates. */
export interface Measure {
  readonly invariant: string;
  readonly what: string;
  readonly value: number;
  readonly most: number;
}

/** The rows at the end, and the changes of tasks that a trigger recorded. */
export interface Rows {
  readonly tasks: readonly TaskRow[];
  readonly events: readonly EventRow[];
  readonly moves: readonly Move[];
  readonly deliveries: readonly DeliveryRow[];
}

export interface TaskRow {
  readonly id: string;
  readonly agent: string;
  readonly state: string;
  readonly seq: number;
  readonly epoch: number;
  readonly held: boolean;
  /** The text of its artifacts. */
  readonly said: string;
  /** The text of its status message, for a failed task. */
  readonly why: string;
}

export interface EventRow {
  readonly taskId: string;
  readonly seq: number;
  readonly terminal: boolean;
  readonly at: number;
}

/** One change of a task, with the time of the database at the write. */
export interface Move {
  readonly taskId: string;
  readonly at: number;
  readonly from: { readonly state: string; readonly seq: number; readonly epoch: number };
  readonly to: { readonly state: string; readonly seq: number; readonly epoch: number };
  /** True when another process took the task although its holder was alive and the lease had not ended. */
  readonly stolen: boolean;
  /** The id of the message that the remote agent is known to have since this change. */
  readonly remembered?: string;
}

export interface DeliveryRow {
  readonly id: string;
  readonly taskId: string;
  readonly configId: string;
  readonly seq: number;
  readonly status: string;
  /** Time of the first recorded attempt that the receiver accepted. */
  readonly deliveredAt?: number;
}

export function emptyHistory(): History {
  return {
    sends: [],
    sightings: [],
    streams: [],
    ends: [],
    answers: [],
    leases: [],
    reports: [],
    remoteSends: [],
    posts: [],
    faults: [],
    forbidden: [],
    texts: [],
    canaries: [],
    measures: [],
    rows: { tasks: [], events: [], moves: [], deliveries: [] },
  };
}

/** Checks one invariant and yields a text for each violation. */
export type Check = (history: History) => Iterable<string>;

/** Groups rows by a key, in their order. */
export function groupBy<Row>(rows: Iterable<Row>, keyOf: (row: Row) => string | undefined): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = keyOf(row);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}
