import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { canonicalJson } from '../kernel/canonical-json.js';
import { RialtoError } from '../kernel/errors.js';
import { newId, type TaskId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus, type Act } from '../kernel/verb-bus.js';
import type { RowChange } from '../platform/database/row-writer.js';
import { withoutQuery } from '../platform/secrets/url-queries.js';
import type { Message } from '../protocol/a2a/model.js';
import type { SendParams } from '../protocol/a2a/request/operations.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { EarlierMessages } from './earlier-messages.js';
import type { Said } from './executor.port.js';
import type { Inbox } from './lifecycle/task-feed.js';
import { requireNotEnded } from './lifecycle/task.lifecycle.js';
import { SubmissionChecks } from './run/submission-checks.js';
import { TaskIntake } from './run/task-intake.js';
import type { ActiveRun } from './run/task-run.js';
import type { IdempotencyKey } from './storage/task-writer.js';
import { messageSubmission, submission } from './task-verbs.js';
import { TaskExecutors } from './task-executors.js';
import { type StoredTask } from './task.types.js';
import { restAfter } from '../platform/turns.js';

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
    private readonly earlier: EarlierMessages,
    private readonly intake: TaskIntake,
    private readonly checks: SubmissionChecks,
    private readonly executors: TaskExecutors,
  ) {}

  /**
   * Resolves when the message is stored or answered, never before. Throws `denied`, `task_not_found`, `invalid_params`,
   * `content_type_not_supported`, `too_large`, `unprocessable`, `unsupported_operation`, `idempotency_key_reused`,
   * `rate_limited`, `unavailable`.
   */
  submit(ctx: CallContext, agent: PublishedAgent, submitted: Submission): Promise<Accepted> {
    if (ctx.org.id !== agent.org.id)
      throw new RialtoError('denied', { message: 'agents are called with a credential of their own org' });
    const { params } = submitted;
    const key = idempotencyKeyOf(params);
    let earlier: Accepted | undefined;
    const repeats = async (): Promise<boolean> => {
      earlier = key && (await this.earlier.resultOfKey(ctx, agent, key));
      return earlier !== undefined;
    };
    const { pushConfig } = params;
    const content = { ...contentOf(params), ...answerOf(params) };
    const check = () => this.requireSendable(ctx, agent, params);
    const sent = messageSubmission(ctx, agent, params.message, content);
    const behind = async () => this.executors.ofKind(agent.executor.kind).addresses?.({ ctx, agent });
    const receivers = pushConfig && { receivers: { url: pushConfig.url } };
    const call = { ...sent, ...receivers, check, behind, ...(key && { repeats }) };
    return this.verbs.around(call, (act) =>
      earlier ? Promise.resolve(replayed(earlier, submitted)) : this.accept(act, ctx, agent, submitted, key),
    );
  }

  /** True when this caller may send to the agent. Used for lists of agents. */
  mayUse(ctx: CallContext, agent: PublishedAgent): Promise<boolean> {
    return this.verbs.permits(submission(ctx, agent));
  }

  /** Throws for a message that is refused in any case, so that no person is asked about it. */
  private async requireSendable(ctx: CallContext, agent: PublishedAgent, params: SendParams): Promise<void> {
    await this.checks.requireAcceptable(ctx, agent, params);
    const { referenceTaskIds, taskId, contextId, parts } = params.message;
    if (referenceTaskIds) await this.earlier.requireTasks(ctx, referenceTaskIds);
    if (taskId === undefined) return;
    const from = await this.earlier.taskToContinue(ctx, agent, taskId, contextId);
    this.checks.requireAcceptableFor(agent, from, parts);
    requireNotEnded(from);
  }

  private async accept(
    act: Act,
    ctx: CallContext,
    agent: PublishedAgent,
    submitted: Submission,
    key: IdempotencyKey | undefined,
  ): Promise<Accepted> {
    const { message } = submitted.params;
    await this.checks.requireAcceptable(ctx, agent, submitted.params);
    const known = key && (await this.earlier.resultOfKey(ctx, agent, key));
    if (known) return replayed(known, submitted);
    if (message.referenceTaskIds) await this.earlier.requireTasks(ctx, message.referenceTaskIds);
    const accepted = await this.takeIn(act, ctx, agent, submitted, key);
    return accepted ?? replayed(await this.resultOfWinner(ctx, agent, key, message.taskId), submitted);
  }

  /** Creates or continues the task of a message. Returns undefined when a concurrent request came first. */
  private async takeIn(
    act: Act,
    ctx: CallContext,
    agent: PublishedAgent,
    submitted: Submission,
    key: IdempotencyKey | undefined,
  ): Promise<Accepted | undefined> {
    const { taskId, contextId, parts } = submitted.params.message;
    await restAfter(parts);
    if (taskId !== undefined) {
      const from = await this.earlier.taskToContinue(ctx, agent, taskId, contextId);
      this.checks.requireAcceptableFor(agent, from, parts);
      return this.checks.admitMessage(ctx, async () => {
        const taken = await this.intake.resumeTask(act, ctx, agent, from, submitted, key);
        return taken && { isNew: false, ...taken };
      });
    }
    await this.checks.requireNoNest(ctx, agent, submitted.waits);
    return this.checks.admitMessage(ctx, async () => {
      const taken = await this.intake.createTask(act, ctx, agent, submitted, key);
      const reply = taken?.run?.reply;
      return reply ? this.keepReply(ctx, agent, taken.task, reply, key) : taken && { isNew: true, ...taken };
    });
  }

  /**
   * Returns a reply that is the whole answer. Stores nothing, except the reply under its idempotency key. Returns
   * undefined when a concurrent request came first.
   */
  private async keepReply(
    ctx: CallContext,
    agent: PublishedAgent,
    { contextId, id }: StoredTask,
    content: Said,
    key: IdempotencyKey | undefined,
  ): Promise<Accepted | undefined> {
    const reply: Message = { messageId: content.messageId ?? newId(), contextId, role: 'ROLE_AGENT', ...content };
    return !key || (await this.earlier.keepReply(ctx, agent, key, id, reply)) ? { reply } : undefined;
  }

  /**
   * Result for a message that lost a race: that of the same key, else an error. @param taskId the task of the message;
   * another message, or the end of the task, came first.
   */
  private async resultOfWinner(
    ctx: CallContext,
    agent: PublishedAgent,
    key: IdempotencyKey | undefined,
    taskId: string | undefined,
  ): Promise<Accepted> {
    const known = key && (await this.earlier.resultOfKey(ctx, agent, key));
    if (known) return known;
    const code = taskId === undefined ? 'conflict' : 'unsupported_operation';
    throw new RialtoError(code, { message: 'the task changed meanwhile; get the task and send the message again' });
  }
}

/** The content of a message: everything except the ids that a client creates anew for a retry. */
function contentOf({ message, metadata }: SendParams): JsonObject {
  const { parts, taskId, contextId, referenceTaskIds, metadata: own } = message;
  return { parts, taskId, contextId, referenceTaskIds, own, metadata } as unknown as JsonObject;
}

/**
 * Returns what a message asks of its answer: extensions, and the URL that gets the updates of its task. Approvers see
 * neither the token nor the query of that URL.
 */
function answerOf({ message: { extensions }, pushConfig }: SendParams): JsonObject {
  const push = pushConfig && { taskPushNotificationConfig: { url: withoutQuery(pushConfig.url) } };
  return { ...(extensions && extensions.length > 0 && { extensions }), ...push };
}

function idempotencyKeyOf(params: SendParams): IdempotencyKey | undefined {
  if (params.idempotencyKey === undefined) return undefined;
  return { key: params.idempotencyKey, payloadHash: hash('sha256', canonicalJson(contentOf(params)), 'hex') };
}

function replayed(known: Accepted, { onReplay }: Submission): Accepted {
  onReplay?.();
  return known;
}
