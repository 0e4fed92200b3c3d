/** Everything a run has seen, from outside and in the rows: what the checker judges. Times are milliseconds since the epoch, of one machine. */
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
  /** Acts that had to be refused or to leave nothing, and what came of them. */
  readonly forbidden: Forbidden[];
  /** What an org was told, or what a log holds, that could carry a secret of somebody else. */
  readonly texts: Told[];
  /** What only one org may be told; `org` is `nobody` for what no answer and no log may hold. */
  readonly canaries: { readonly org: string; readonly text: string }[];
  /** Measures that have a bound: delays, leases that ran low, connections. */
  readonly measures: Measure[];
  rows: Rows;
}

/** One try of one logical send; tries of the same send share key and payload. */
export interface Send {
  readonly org: string;
  readonly agent: string;
  readonly key?: string;
  readonly payload: string;
  readonly at: number;
  readonly ms: number;
  /** HTTP status; absent when the connection broke. */
  readonly status?: number;
  /** It was refused for now, with a `Retry-After`. */
  readonly mayRetry?: boolean;
  readonly taskId?: string;
  readonly errorCode?: string;
  /** The caller expects the agent to say the payload back. */
  readonly echoes?: boolean;
}

/** A state that somebody saw; in the order of each observer. */
export interface Sighting {
  readonly by: string;
  readonly taskId: string;
  readonly state: string;
  readonly at: number;
}

/** One connection of a reader. */
export interface StreamSeen {
  readonly taskId: string;
  /** The `Last-Event-ID` it was opened with. */
  readonly after?: number;
  readonly frames: readonly { readonly seq: number; readonly at: number; readonly isSnapshot: boolean }[];
}

/** Somebody tried to end a task: its caller by a cancel, whoever works on it by a report. */
export interface EndCall {
  readonly taskId: string;
  readonly want: 'canceled' | 'completed' | 'failed';
  readonly accepted: boolean;
  /** The state that an accepted call was answered with. */
  readonly state?: string;
}

/** Somebody answered the question of a task. */
export interface AnswerCall {
  readonly taskId: string;
  readonly accepted: boolean;
}

/** A task handed out of a mailbox, and a report on it. */
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

/** A message as a foreign agent received it. */
export interface RemoteSend {
  readonly messageId: string;
  /** The words of the caller, which name one logical message. */
  readonly payload: string;
  readonly at: number;
  /** When its answer had left in full; absent when the line broke before. */
  answeredAt?: number;
}

/** A webhook as a receiver got it. */
export interface Post {
  readonly webhookId: string;
  readonly at: number;
  /** When the answer left. */
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

/** `value` is in the unit of `most`; `invariant` says what it would break. */
export interface Measure {
  readonly invariant: string;
  readonly what: string;
  readonly value: number;
  readonly most: number;
}

/** The rows at the end, and the moves of tasks that a trigger wrote down. */
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
  /** The words of its artifacts. */
  readonly said: string;
  /** What its status says, for a failed one. */
  readonly why: string;
}

export interface EventRow {
  readonly taskId: string;
  readonly seq: number;
  readonly terminal: boolean;
  readonly at: number;
}

/** One change of a task, by the clock of the database at the moment of the write. */
export interface Move {
  readonly taskId: string;
  readonly at: number;
  readonly from: { readonly state: string; readonly seq: number; readonly epoch: number };
  readonly to: { readonly state: string; readonly seq: number; readonly epoch: number };
  /** Another process took it although the holder was there and its lease ran. */
  readonly stolen: boolean;
  /** The message that the remote was known to have from this move on. */
  readonly remembered?: string;
}

export interface DeliveryRow {
  readonly id: string;
  readonly taskId: string;
  readonly configId: string;
  readonly seq: number;
  readonly status: string;
  /** When a try that was taken was first on record. */
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

/** What one part of the checker finds of one invariant, in words. */
export type Check = (history: History) => Iterable<string>;

/** Rows by one of their values, in their order. */
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
