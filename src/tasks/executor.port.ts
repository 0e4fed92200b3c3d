import type { CallContext } from '../kernel/call-context.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { RowChange } from '../platform/database/row-writer.js';
import type { Artifact, Message } from '../protocol/a2a/model.js';
import type { TaskState } from '../protocol/a2a/states.js';
import type { ExecutorConfig, PublishedAgent } from '../registry/published.types.js';
import type { StoredTask } from './task.types.js';

/** A message of an agent. The task fills in the missing ids, the role and the context. */
export type Said = Pick<Message, 'parts'> & Partial<Pick<Message, 'messageId' | 'metadata' | 'extensions'>>;

/** Rows of the executor's module that are committed together with an update, or not at all; each has a `task_id`. */
interface WithRows {
  readonly rows?: readonly RowChange[];
}

/** One update that a run yields. */
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
  /** State that a later run of this task needs, e.g. the id of a remote task. Makes no event. */
  | ({ readonly memo: Json } & WithRows)
  /**
   * The work continues outside of the gateway. If no report arrives within `lookAgainMs` milliseconds, a worker runs
   * the task again.
   */
  | ({ readonly deferred: { readonly lookAgainMs: number }; readonly memo?: Json } & WithRows);

/** One run of a task: from its message until it ends, asks its caller, or is deferred. */
export interface TaskRun {
  /** The caller of the task; without the signal of the request, because the task outlives the request. */
  readonly ctx: CallContext;
  readonly agent: PublishedAgent;
  /** The task as it was when the run began. After a process was lost, it includes everything that process committed. */
  readonly task: StoredTask;
  /** The newest message of the caller. */
  readonly message: Message;
  /** Aborts when the task is canceled or taken over, or when the process stops. */
  readonly signal: AbortSignal;
  /** Messages of earlier tasks of this context, oldest first. */
  earlier(): Promise<Message[]>;
  /** Resolves when all updates so far are stored, or the task was taken over. */
  stored(): Promise<void>;
}

/**
 * Does the work of an agent. A task may be run again from the end of its log, in another process, after its process was
 * killed.
 * A throw fails the task: with the message of the RialtoError when that is public, else with a generic text.
 */
export interface TaskExecutor {
  readonly kind: ExecutorConfig['kind'];
  /**
   * True when a run has no effects outside of the gateway: it may begin before the task is stored (decisions: fast
   * path).
   */
  readonly pure: boolean;
  /**
   * Set when an external worker fetches the tasks: milliseconds that a task waits for it before a run begins. The first
   * commit stores the task as waiting, and no job is queued.
   */
  readonly parkedMs?: number;
  /**
   * True when the work is done elsewhere and the stored memo lets any process continue it. A process that stops then
   * releases the task at once.
   */
  leavesWork?(run: Pick<TaskRun, 'agent' | 'task' | 'message'>): boolean;
  execute(run: TaskRun): AsyncIterable<TaskUpdate> | Iterable<TaskUpdate>;
  /** Returns the addresses of the registered agent or server that does the work of the agent (`Approvable.behind`). */
  addresses?(run: Pick<TaskRun, 'ctx' | 'agent'>): Promise<JsonObject | undefined>;
  /**
   * Called after the last commit of a run, and after a task was stored as waiting: an external worker can lease the
   * row.
   */
  rested?(run: Pick<TaskRun, 'agent'>): void;
  /** Called after a cancel that reached no run of this process; e.g. cancels a remote task. */
  abandon?(run: Omit<TaskRun, 'signal' | 'earlier' | 'stored'>): Promise<void>;
}
