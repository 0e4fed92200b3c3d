import type { CallContext } from '../kernel/call-context.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { RowChange } from '../platform/database/row-writer.js';
import type { Artifact, Message } from '../protocol/a2a/model.js';
import type { TaskState } from '../protocol/a2a/states.js';
import type { ExecutorConfig, PublishedAgent } from '../registry/published.types.js';
import type { StoredTask } from './task.types.js';

/** What an agent says: ids, role and context are the task's, and filled in. */
export type Said = Pick<Message, 'parts'> & Partial<Pick<Message, 'messageId' | 'metadata' | 'extensions'>>;

/** Rows of the executor's own room that stand or fall with an update; each has a `task_id`. */
interface WithRows {
  readonly rows?: readonly RowChange[];
}

/** One thing that happened in a run. */
export type TaskUpdate =
  | ({
      readonly status: { readonly state: TaskState; readonly message?: Said };
      readonly metadata?: JsonObject;
    } & WithRows)
  | {
      readonly artifact: Omit<Artifact, 'artifactId'> & { readonly artifactId?: string };
      readonly append?: boolean;
      readonly lastChunk?: boolean;
      readonly metadata?: JsonObject;
    }
  /** The whole answer, without a task; only as the first update of a new one. */
  | { readonly reply: Said }
  /** What a later run of this task has to know, e.g. the id of a remote task. No event. */
  | ({ readonly memo: Json } & WithRows)
  /** The work goes on outside; whoever does it reports within so many milliseconds, or the task is looked at again. */
  | ({ readonly deferred: { readonly lookAgainMs: number }; readonly memo?: Json } & WithRows);

/** One run of a task: from its message to its end, a question, or a hand-over. */
export interface TaskRun {
  /** On whose behalf; without the signal of the request, for the task outlives it. */
  readonly ctx: CallContext;
  readonly agent: PublishedAgent;
  /** As it was when the run began; after a lost process with everything that one wrote. */
  readonly task: StoredTask;
  /** The newest message of the caller. */
  readonly message: Message;
  /** Aborts when the task is canceled, taken over, or the process stops. */
  readonly signal: AbortSignal;
  /** Messages of earlier tasks of this context, oldest first. */
  earlier(): Promise<Message[]>;
}

/**
 * Who does the work of an agent. It may be run again from where the log ends, in another process, after its own was killed.
 * A throw fails the task: with the message of a RialtoError that is public, else with a plain text.
 */
export interface TaskExecutor {
  readonly kind: ExecutorConfig['kind'];
  /** True when a run touches nothing outside: it may begin before the task is stored (decisions: fast path). */
  readonly pure: boolean;
  /**
   * Set when an external worker fetches the tasks: milliseconds that a task waits for it before a run begins. The first commit stores
   * the task as waiting, and no job is queued.
   */
  readonly parkedMs?: number;
  /** True when the work is done elsewhere, and what is remembered lets anyone go on: a process that stops leaves it to others at once. */
  leavesWork?(run: Pick<TaskRun, 'task' | 'message'>): boolean;
  execute(run: TaskRun): AsyncIterable<TaskUpdate> | Iterable<TaskUpdate>;
  /** Called after the last commit of a run, and after a task was stored as waiting: an external worker can lease the row. */
  rested?(run: Pick<TaskRun, 'agent'>): void;
  /** Told after a cancel that reached no run of this process; e.g. cancels a remote task. */
  abandon?(run: Omit<TaskRun, 'signal' | 'earlier'>): Promise<void>;
}
