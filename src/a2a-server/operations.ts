import { Injectable } from '@nestjs/common';
import { parseExact } from '../protocol/exact-integers.js';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { ReadShares } from '../platform/http/shares/read-shares.js';
import type { SendValue } from '../protocol/a2a/dialect.js';
import type { A2aVersion, Message } from '../protocol/a2a/model.js';
import type { DecodedOperation, Operation, OperationName, SendParams } from '../protocol/a2a/request/operations.js';
import { PublishedService } from '../registry/published.service.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { TaskService, type StreamedEvent } from '../tasks/task.service.js';
import { TaskSendService, type SentMessage } from '../tasks/task-send.service.js';
import { taskView } from '../tasks/task.types.js';
import { WebhookService } from '../webhooks/webhook.service.js';

/** One request at a door, understood: who asks which agent, and how long an answer may take. */
export interface Asked {
  readonly ctx: CallContext;
  readonly agent: PublishedAgent;
  readonly version: A2aVersion;
  /** How long a caller waits for a settled task; then it gets the task as it is (RI-27). */
  readonly waitMs: number;
  /** What aborts when the caller goes away. */
  readonly gone: () => AbortSignal;
  /** `Last-Event-ID`: the stream goes on behind this event. */
  readonly after?: number;
  /** The header of that name; wins over the one in the message. */
  readonly idempotencyKey?: string;
  /** Is called when the key brought what an earlier message became. */
  readonly onReplay?: () => void;
  /** What was decided of the message before, for the metadata of its task or of the message that is the answer. */
  readonly facts?: JsonObject;
}

type Handlers = {
  [Name in Exclude<OperationName, 'SendStreamingMessage' | 'SubscribeToTask'>]: (
    asked: Asked,
    params: Extract<Operation, { name: Name }>['params'],
  ) => Promise<unknown>;
};

/** The operations of A2A, each one call of a service; what every binding, version and older spelling ends in. */
@Injectable()
export class Operations {
  constructor(
    private readonly tasks: TaskService,
    private readonly sends: TaskSendService,
    private readonly webhooks: WebhookService,
    private readonly published: PublishedService,
    private readonly reads: ReadShares,
  ) {}

  private readonly handlers: Handlers = {
    SendMessage: (asked, params) => this.send(asked, params),
    GetTask: async ({ ctx, agent }, { id, historyLength }) =>
      taskView(await this.tasks.get(ctx, agent, id), { historyLength }),
    ListTasks: ({ ctx, agent }, params) => this.reads.around(ctx, 2, () => this.tasks.list(ctx, agent, params)),
    CancelTask: (asked, params) => this.cancel(asked, params),
    CreateTaskPushNotificationConfig: ({ ctx, agent }, params) => this.webhooks.create(ctx, agent, params),
    GetTaskPushNotificationConfig: ({ ctx, agent }, params) => this.webhooks.get(ctx, agent, params),
    ListTaskPushNotificationConfigs: ({ ctx, agent }, params) => this.webhooks.list(ctx, agent, params),
    DeleteTaskPushNotificationConfig: ({ ctx, agent }, params) => this.webhooks.delete(ctx, agent, params),
    GetExtendedAgentCard: (asked) => this.extendedCard(asked),
  };

  /** The answer of an operation that has one, canonical (protocol/a2a/dialect.ts, OperationValues). */
  run(asked: Asked, { operation }: DecodedOperation): Promise<unknown> {
    requireAbility(asked.agent, operation.name);
    const handle = this.handlers[operation.name as keyof Handlers] as (
      asked: Asked,
      params: unknown,
    ) => Promise<unknown>;
    return handle(asked, operation.params);
  }

  /** The events of an operation that streams. */
  stream(asked: Asked, { operation }: DecodedOperation): AsyncGenerator<StreamedEvent, void> {
    requireAbility(asked.agent, operation.name);
    const { ctx, agent, after, gone } = asked;
    if (operation.name === 'SubscribeToTask') {
      const { id, endedToo } = operation.params;
      return this.tasks.subscribe(ctx, agent, id, { after, endedToo, signal: gone() });
    }
    if (operation.name !== 'SendStreamingMessage')
      throw new RialtoError('internal', { message: 'this does not stream' });
    return this.sendStreaming(asked, operation.params);
  }

  /** In v1.0 a second cancel changes nothing; for v0.3 a canceled task is not cancelable (section 7.4.1). */
  private async cancel(
    { ctx, agent, version }: Asked,
    { id, metadata }: Extract<Operation, { name: 'CancelTask' }>['params'],
  ) {
    const before = version === '0.3' ? await this.tasks.visible(ctx, agent, id) : undefined;
    const task = await this.tasks.cancel(ctx, agent, id, metadata);
    if (before?.state === 'TASK_STATE_CANCELED')
      throw new RialtoError('task_not_cancelable', { message: 'the task was canceled already', data: { taskId: id } });
    return taskView(task);
  }

  private async send(asked: Asked, params: SendParams): Promise<SendValue> {
    const { ctx, agent, waitMs, gone } = asked;
    try {
      const sent = await this.sends.send(ctx, agent, await this.submission(asked, params), { waitMs, gone });
      const answer = 'message' in sent ? { message: withFacts(sent.message, asked.facts) } : sent;
      return params.reyn?.isAnswer ? { ...answer, answered: true } : answer;
    } catch (error) {
      // In Reyn's words a message to a task that does not wait is no error, but an answer that was not taken (RY-30).
      const { taskId } = params.message;
      const known = RialtoError.from(error);
      if (!params.reyn?.isAnswer || taskId === undefined || known.code !== 'unsupported_operation') throw error;
      const task = await this.tasks.get(ctx, agent, taskId);
      return { task: taskView(task), answered: false, reason: known.message };
    }
  }

  private async *sendStreaming(asked: Asked, params: SendParams): AsyncGenerator<StreamedEvent, void> {
    const { ctx, agent, gone } = asked;
    for await (const event of this.sends.stream(ctx, agent, await this.submission(asked, params), gone())) {
      const { body } = event;
      yield 'message' in body ? { ...event, body: { message: withFacts(body.message, asked.facts) } } : event;
    }
  }

  private async submission(
    { ctx, agent, idempotencyKey, onReplay, facts }: Asked,
    params: SendParams,
  ): Promise<SentMessage> {
    const { pushConfig, choiceId, message } = params;
    if (pushConfig) {
      requireAbility(agent, 'CreateTaskPushNotificationConfig');
      await this.webhooks.admit(ctx, agent, pushConfig);
    }
    const chosen =
      choiceId === undefined ? message : { ...message, metadata: { ...message.metadata, choice_id: choiceId } };
    return {
      params: { ...params, message: chosen, ...(idempotencyKey !== undefined && { idempotencyKey }) },
      onReplay,
      ...(facts && { facts }),
      ...(pushConfig && { rows: (task: string) => this.webhooks.rowsOf(ctx, task, pushConfig) }),
    };
  }

  private async extendedCard({ ctx, agent, version }: Asked): Promise<JsonObject> {
    if (!agent.extendedCard)
      throw new RialtoError(version === '1.0' ? 'unsupported_operation' : 'extended_card_not_configured');
    if (ctx.org.id !== agent.org.id)
      throw new RialtoError('denied', { message: 'agents are called with a credential of their own org' });
    const { body } = await this.published.cardFor(agent, { variant: 'extended', version });
    return parseExact(body.toString('utf8')) as JsonObject;
  }
}

function withFacts(message: Message, facts: JsonObject | undefined): Message {
  return facts ? { ...message, metadata: { ...message.metadata, ...facts } } : message;
}

/** Throws when the card says that the agent does not do this (RY-44). */
function requireAbility(agent: PublishedAgent, name: OperationName): void {
  if (!agent.streaming && (name === 'SendStreamingMessage' || name === 'SubscribeToTask'))
    throw new RialtoError('unsupported_operation', { message: 'this agent does not stream' });
  if (!agent.pushNotifications && name.includes('PushNotification'))
    throw new RialtoError('push_not_supported', { message: 'this agent posts no notifications' });
}
