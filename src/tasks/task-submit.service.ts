import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import { RialtoError } from '../kernel/errors.js';
import { isUuid, newId, type AgentId, type TaskId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus, type Act } from '../kernel/verb-bus.js';
import { Ledger } from '../platform/bus/ledger.js';
import type { RowChange } from '../platform/database/row-writer.js';
import { cleartext, refusedContent } from '../protocol/a2a/media-types.js';
import type { Message, Part } from '../protocol/a2a/model.js';
import type { SendParams } from '../protocol/a2a/request/operations.js';
import { dispatchMember } from '../registry/own-routing.js';
import type { PublishedAgent } from '../registry/published.types.js';
import type { Said } from './executor.port.js';
import { IdempotencyStore } from './storage/idempotency.store.js';
import type { FirstCommit, LiveTask } from './lifecycle/live-task.js';
import { LiveTasks } from './lifecycle/live-tasks.js';
import type { Inbox } from './lifecycle/task-feed.js';
import { openTask, resumeTask, type Moved } from './lifecycle/task.lifecycle.js';
import type { ActiveRun } from './run/task-run.js';
import { TaskQuota } from './run/task-quota.js';
import { TaskRunner } from './run/task.runner.js';
import { maySee, originOf, placeOf, submission } from './task-verbs.js';
import type { IdempotencyKey } from './storage/task-writer.js';
import { type StoredTask } from './task.types.js';

/** Milliseconds that a pure executor may take before its task is stored as working (decisions: fast path). */
const graceMs = 5;

export interface Submission {
  readonly params: SendParams;
  /** True when the caller waits for the result; otherwise the task is queued. */
  readonly waits: boolean;
  /** True when the caller reads events: an inbox collects them from the first event on. */
  readonly follows?: boolean;
  /** Rows that are committed with the task, e.g. its push configuration. */
  readonly rows?: (task: TaskId) => RowChange[];
  /** Called when the message repeats an earlier one with the same idempotency key and gets that one's result. */
  readonly onReplay?: () => void;
  /** Metadata that the gateway adds to a new task, beside the caller's metadata. */
  readonly facts?: JsonObject;
}

/** The result of a message: a stored task, or a reply without a task. */
export type Accepted =
  | {
      readonly task: StoredTask;
      /** True when the message created the task. */
      readonly isNew: boolean;
      /** The run of the task in this process. */
      readonly run?: ActiveRun;
      /** Events from this message on; its consumer closes it. */
      readonly inbox?: Inbox;
    }
  | { readonly reply: Message };

/** Accepts messages to published agents: new tasks, answers to questions, and repeated messages. */
@Injectable()
export class TaskSubmitService {
  constructor(
    private readonly verbs: VerbBus,
    private readonly ledger: Ledger,
    private readonly lives: LiveTasks,
    private readonly runner: TaskRunner,
    private readonly keys: IdempotencyStore,
    private readonly quota: TaskQuota,
  ) {}

  /**
   * Resolves when the message is stored or answered, never before. Throws `denied`, `task_not_found`, `invalid_params`,
   * `content_type_not_supported`, `unsupported_operation`, `idempotency_key_reused`, `rate_limited`, `unavailable`.
   */
  submit(ctx: CallContext, agent: PublishedAgent, submitted: Submission): Promise<Accepted> {
    if (ctx.org.id !== agent.org.id)
      throw new RialtoError('denied', { message: 'agents are called with a credential of their own org' });
    return this.verbs.around({ args: argsOf(submitted.params.message), ...submission(ctx, agent) }, (act) =>
      this.accept(act, ctx, agent, submitted),
    );
  }

  /** True when this caller may send to the agent. Used for lists of agents. */
  mayUse(ctx: CallContext, agent: PublishedAgent): Promise<boolean> {
    return this.verbs.permits(submission(ctx, agent));
  }

  /** The agent that accepted an earlier message of this caller with this key. */
  agentOfKey({ org, principal }: CallContext, key: string): Promise<AgentId | undefined> {
    return this.keys.agentOf(org.id, callerOf(principal), key);
  }

  /** The agent of this caller's newest task in a context. */
  agentOfContext({ org, principal }: CallContext, contextId: string | undefined): Promise<AgentId | undefined> {
    if (contextId === undefined) return Promise.resolve(undefined);
    return this.lives.store.agentOfContext(org.id, callerOf(principal), contextId);
  }

  private async accept(act: Act, ctx: CallContext, agent: PublishedAgent, submitted: Submission): Promise<Accepted> {
    const { message } = submitted.params;
    requireNoLoop(ctx, agent);
    requireAcceptedContent(agent, message.parts);
    const key = keyOf(submitted.params);
    const known = key && (await this.known(ctx, agent, key));
    if (known) return replayed(known, submitted);
    if (message.referenceTaskIds) await this.requireReferences(ctx, message.referenceTaskIds);
    if (message.taskId === undefined) await this.requireNoNest(ctx, agent, submitted.waits);
    const accepted =
      message.taskId === undefined
        ? await this.quota.admit(ctx, () => this.open(act, ctx, agent, submitted, key))
        : await this.resume(ctx, agent, message.taskId, submitted, key);
    return accepted ?? replayed(await this.lost(ctx, agent, key, message.taskId), submitted);
  }

  /**
   * Limits nested tasks of agents that call other agents: such a call can create a task in this gateway again, and this
   * task may wait for it. Throws `rate_limited`.
   */
  private async requireNoNest({ org, principal }: CallContext, agent: PublishedAgent, waits: boolean): Promise<void> {
    if (this.runner.executorOf(agent).leavesWork)
      await this.quota.requireNoNest(org.id, agent.id, callerOf(principal), waits);
  }

  /** Creates a task. Returns undefined when a concurrent request took the key first. */
  private async open(
    act: Act,
    ctx: CallContext,
    agent: PublishedAgent,
    { params, waits, follows, rows, facts }: Submission,
    key: IdempotencyKey | undefined,
  ): Promise<Accepted | undefined> {
    const id = newId<TaskId>();
    const metadata = metadataOf(params.metadata, facts);
    const seed = {
      id,
      orgId: ctx.org.id,
      agentId: agent.id,
      agentName: agent.name,
      contextId: params.message.contextId ?? contextOf(ctx, agent),
      principal: ctx.principal,
      depth: ctx.depth,
      ...originOf(ctx),
      ...(metadata && { metadata }),
    };
    const moved = openTask(seed, params.message, this.lives.step());
    const others = rows?.(id) ?? [];
    const record = this.ledger.completion(act);
    const first = { record: record.rows, rows: others, key };
    const { pure, parkedMs } = this.runner.executorOf(agent);
    const inbox = follows ? this.lives.feed.open(id) : undefined;
    try {
      if (!waits || parkedMs !== undefined) {
        const stored = await this.enqueue(moved, first, agent);
        record.done(); // the record is committed even when a concurrent request had taken the key
        if (!stored) inbox?.close();
        return stored && { task: stored, isNew: true, inbox };
      }
      const live = this.lives.fresh(moved, first);
      const mayStartFirst = pure && others.length === 0;
      const begun = await this.begin(live, agent, ctx, mayStartFirst);
      if (begun?.run.reply) {
        inbox?.close();
        return await this.answer(ctx, agent, live, begun.run.reply, key);
      }
      record.done();
      if (!begun) inbox?.close();
      return begun && { isNew: true, inbox, ...begun };
    } catch (error) {
      inbox?.close();
      throw error;
    }
  }

  /**
   * Stores a new task and starts its run, in the order that its executor allows. Returns undefined when a concurrent
   * request took the key first.
   */
  private async begin(
    live: LiveTask,
    agent: PublishedAgent,
    ctx: CallContext,
    mayStartFirst: boolean,
  ): Promise<{ task: StoredTask; run: ActiveRun } | undefined> {
    if (!mayStartFirst) {
      await live.save();
      const task = live.committed;
      return live.lost ? undefined : { task, run: this.start(live, agent, ctx, true) };
    }
    const run = this.start(live, agent, ctx, false);
    if (!live.atRest && !run.reply) await settledOrGrace(run);
    if (run.reply) return { task: live.task, run };
    return (await this.stored(run)) ? { task: live.committed, run } : undefined;
  }

  private start(live: LiveTask, agent: PublishedAgent, ctx: CallContext, saves: boolean): ActiveRun {
    const run = this.runner.start(live, agent, ctx, saves);
    this.quota.freeAfter(run);
    return run;
  }

  /** Makes the first commit of a run that began before it. Stops the run when the task could not be stored. */
  private async stored(run: ActiveRun): Promise<boolean> {
    try {
      await run.saveFromNow();
      return !run.live.lost;
    } finally {
      if (!run.live.isStored) run.stop('lost');
    }
  }

  /**
   * Adds the caller's next message to its task that waits for it. Returns undefined when the task changed meanwhile.
   */
  private async resume(
    ctx: CallContext,
    agent: PublishedAgent,
    id: string,
    { params, waits, follows, rows }: Submission,
    key: IdempotencyKey | undefined,
  ): Promise<Accepted | undefined> {
    const task = isUuid(id) ? await this.lives.store.find(id) : undefined;
    if (!task || task.agentId !== agent.id || !maySee(ctx, task)) throw noSuchTask(id);
    const { contextId } = params.message;
    if (contextId !== undefined && contextId !== task.contextId) {
      const violations = [{ field: 'message.contextId', description: 'is not the context of the task' }];
      throw new RialtoError('invalid_params', { message: 'contextId is not the context of the task', violations });
    }
    const moved = resumeTask(task, params.message, this.lives.step());
    return this.quota.admit(ctx, async () => {
      const first = { key, rows: rows?.(task.id) };
      const inbox = follows ? this.lives.feed.open(task.id) : undefined;
      try {
        if (!waits || this.runner.executorOf(agent).parkedMs !== undefined) {
          const stored = await this.enqueue(moved, first, agent, task);
          if (!stored) inbox?.close();
          return stored && { task: stored, isNew: false, inbox };
        }
        const live = this.lives.resumed(task, moved, first);
        await live.save();
        const stored = live.committed;
        if (!live.lost) return { task: stored, isNew: false, inbox, run: this.start(live, agent, ctx, true) };
        inbox?.close();
        return undefined;
      } catch (error) {
        inbox?.close();
        throw error;
      }
    });
  }

  /** Stores a task without starting it: a worker gets it from the queue, or an external worker fetches it. */
  private async enqueue(
    { task, event }: Moved,
    first: FirstCommit,
    agent: PublishedAgent,
    from?: StoredTask,
  ): Promise<StoredTask | undefined> {
    const executor = this.runner.executorOf(agent);
    const change = { task, from, events: [event], hold: { dueInMs: executor.parkedMs ?? 0 }, ...first };
    if (!(await this.lives.commit(change))) return undefined;
    this.lives.feed.tell(task, [event]);
    if (executor.parkedMs === undefined) void this.lives.enqueue(task.id, this.quota.lineOf(task));
    else executor.rested?.({ agent });
    return task;
  }

  /** Returns a reply that is the whole answer. Stores nothing, except the reply under its idempotency key. */
  private async answer(
    ctx: CallContext,
    agent: PublishedAgent,
    live: LiveTask,
    content: Said,
    key: IdempotencyKey | undefined,
  ): Promise<Accepted> {
    const { contextId, id } = live.task;
    const reply: Message = { messageId: content.messageId ?? newId(), contextId, role: 'ROLE_AGENT', ...content };
    const stored = key && (await this.keys.keepAnswer(ctx.org.id, agent.id, callerOf(ctx.principal), key, id, reply));
    if (key && !stored) return (await this.known(ctx, agent, key)) ?? { reply };
    return { reply };
  }

  /**
   * The result of an earlier message with this key. Throws `idempotency_key_reused` when that message was different.
   */
  private async known(ctx: CallContext, agent: PublishedAgent, key: IdempotencyKey): Promise<Accepted | undefined> {
    const found = await this.keys.find(ctx.org.id, agent.id, callerOf(ctx.principal), key.key);
    if (!found) return undefined;
    if (found.payloadHash !== key.payloadHash)
      throw new RialtoError('idempotency_key_reused', { message: 'this key was used with another message' });
    if (found.answer) return { reply: found.answer };
    const task = await this.lives.store.find(found.taskId);
    return task && { task, isNew: false };
  }

  /**
   * Result for a message that lost a race: that of the same key, else an error. @param taskId the task of the message;
   * another message, or the end of the task, came first.
   */
  private async lost(
    ctx: CallContext,
    agent: PublishedAgent,
    key: IdempotencyKey | undefined,
    taskId: string | undefined,
  ): Promise<Accepted> {
    const known = key && (await this.known(ctx, agent, key));
    if (known) return known;
    const code = taskId === undefined ? 'conflict' : 'unsupported_operation';
    throw new RialtoError(code, { message: 'the task changed meanwhile; get the task and send the message again' });
  }

  /** Throws `task_not_found` unless every referenced task exists and belongs to the caller (abuse case 11). */
  private async requireReferences(ctx: CallContext, ids: readonly string[]): Promise<void> {
    const find = async (id: string) => (isUuid(id) ? this.lives.store.find(id) : undefined);
    const tasks = await Promise.all(ids.map(find));
    const missing = ids.find((_, index) => !tasks[index] || !maySee(ctx, tasks[index]));
    if (missing !== undefined) throw noSuchTask(missing);
  }
}

export function noSuchTask(id: string): RialtoError {
  return new RialtoError('task_not_found', { data: { taskId: id.slice(0, 256) } });
}

/** Merges the caller's metadata with the gateway's. A caller cannot set the gateway's member `dispatchMember`. */
function metadataOf(metadata: JsonObject | undefined, facts: JsonObject | undefined): JsonObject | undefined {
  if (!facts && (!metadata || !Object.hasOwn(metadata, dispatchMember))) return metadata;
  const { [dispatchMember]: _, ...rest } = metadata ?? {};
  return { ...rest, ...facts };
}

/** Arguments for policies: the data of a single data part, and the requested skill. */
function argsOf({ parts, metadata }: Message): JsonObject {
  const data = parts.length === 1 ? parts[0]!.data : undefined;
  const skill: JsonObject = typeof metadata?.skillId === 'string' ? { skillId: metadata.skillId } : {};
  return data !== null && typeof data === 'object' && !Array.isArray(data) ? { ...skill, ...data } : skill;
}

/**
 * The context of a message without one. An agent with a lasting history has one fixed context for each caller; other
 * agents get a new one for each task (RY-38, RY-39).
 */
function contextOf({ org, principal }: CallContext, { history, id }: PublishedAgent): string {
  return history === 'agent' ? hash('sha256', `${org.id}\n${id}\n${callerOf(principal)}`, 'hex').slice(0, 32) : newId();
}

/** The idempotency key with a hash of the payload: everything except the ids that a client creates anew for a retry. */
function keyOf({ idempotencyKey, message, metadata }: SendParams): IdempotencyKey | undefined {
  if (idempotencyKey === undefined) return undefined;
  const { parts, taskId, contextId, referenceTaskIds, metadata: own } = message;
  const payload = canonicalJson({ parts, taskId, contextId, referenceTaskIds, own, metadata });
  return { key: idempotencyKey, payloadHash: hash('sha256', payload, 'hex') };
}

/** Refuses a call to an agent that already waits for the result of this call chain (AN-61). */
function requireNoLoop({ lineage }: CallContext, agent: PublishedAgent): void {
  if (lineage?.path.includes(placeOf(agent)))
    throw new RialtoError('loop_detected', { message: 'this agent is already at work behind this call' });
}

function requireAcceptedContent(agent: PublishedAgent, parts: readonly Part[]): void {
  const refused = refusedContent(parts, agent);
  if (refused === undefined) return;
  throw new RialtoError('content_type_not_supported', {
    message: `this agent does not take ${refused}`,
    ...(refused === cleartext
      ? { hint: 'send data parts with encrypted_payload, or set a2a_accept_cleartext of the agent' }
      : { data: { mediaType: refused, accepted: agent.inputModes } }),
  });
}

function replayed(known: Accepted, { onReplay }: Submission): Accepted {
  onReplay?.();
  return known;
}

function settledOrGrace(run: ActiveRun): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, graceMs);
    void run.ended.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
