import { Injectable } from '@nestjs/common';
import { parseExact } from '../protocol/exact-integers.js';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import type { SendValue } from '../protocol/a2a/dialect.js';
import type { A2aVersion, Message } from '../protocol/a2a/model.js';
import type { DecodedOperation, Operation, OperationName, SendParams } from '../protocol/a2a/request/operations.js';
import { PublishedService } from '../registry/published.service.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { TaskListService } from '../tasks/task-list.service.js';
import { TaskService, type StreamedEvent } from '../tasks/task.service.js';
import { TaskSendService, type SentMessage } from '../tasks/task-send.service.js';
import { taskView } from '../tasks/task.types.js';
import { WebhookService } from '../webhooks/webhook.service.js';

/** Decoded request at a door: the caller, the agent, and how long the answer may take. */
export interface Asked {
  readonly ctx: CallContext;
  readonly agent: PublishedAgent;
  readonly version: A2aVersion;
  /** Milliseconds to wait for a settled task; after that the caller gets the task as it is (RI-27). */
  readonly waitMs: number;
  /** Returns a signal that aborts when the client disconnects. */
  readonly gone: () => AbortSignal;
  /** `Last-Event-ID`: the stream starts after this event. */
  readonly after?: number;
  /** Header `Idempotency-Key`; it has priority over the key in the message. */
  readonly idempotencyKey?: string;
  /** Called when the key returned the task of an earlier message. */
  readonly onReplay?: () => void;
  /** Facts about the choice of the agent, for the metadata of the task or of the answered message. */
  readonly facts?: JsonObject;
}

type Handlers = {
  [Name in Exclude<OperationName, 'SendStreamingMessage' | 'SubscribeToTask'>]: (
    asked: Asked,
    params: Extract<Operation, { name: Name }>['params'],
  ) => Promise<unknown>;
};

/** Operations of A2A, each with one service call. All bindings, versions and older method names use them. */
@Injectable()
export class Operations {
  constructor(
    private readonly tasks: TaskService,
    private readonly lists: TaskListService,
    private readonly sends: TaskSendService,
    private readonly webhooks: WebhookService,
    private readonly published: PublishedService,
  ) {}

  private readonly handlers: Handlers = {
    SendMessage: (asked, params) => this.sendMessage(asked, params),
    GetTask: async ({ ctx, agent }, { id, historyLength }) =>
      taskView(await this.tasks.get(ctx, agent, id), { historyLength }),
    ListTasks: ({ ctx, agent }, params) => this.lists.list(ctx, agent, params),
    CancelTask: (asked, params) => this.cancelTask(asked, params),
    CreateTaskPushNotificationConfig: ({ ctx, agent }, params) => this.webhooks.create(ctx, agent, params),
    GetTaskPushNotificationConfig: ({ ctx, agent }, params) => this.webhooks.get(ctx, agent, params),
    ListTaskPushNotificationConfigs: ({ ctx, agent }, params) => this.webhooks.list(ctx, agent, params),
    DeleteTaskPushNotificationConfig: ({ ctx, agent }, params) => this.webhooks.delete(ctx, agent, params),
    GetExtendedAgentCard: (asked) => this.extendedCard(asked),
  };

  /** Runs an operation without a stream and returns its canonical result (protocol/a2a/dialect.ts, OperationValues). */
  runOperation(asked: Asked, { operation }: DecodedOperation): Promise<unknown> {
    requireAbility(asked.agent, operation.name);
    const handle = this.handlers[operation.name as keyof Handlers] as (
      asked: Asked,
      params: unknown,
    ) => Promise<unknown>;
    return handle(asked, operation.params);
  }

  /** Runs an operation with a stream and returns its events. */
  streamOperation(asked: Asked, { operation }: DecodedOperation): AsyncGenerator<StreamedEvent, void> {
    requireAbility(asked.agent, operation.name);
    const { ctx, agent, after, gone } = asked;
    if (operation.name === 'SubscribeToTask') {
      const { id, endedToo } = operation.params;
      return this.tasks.subscribe(ctx, agent, id, { after, endedToo, signal: gone() });
    }
    if (operation.name !== 'SendStreamingMessage')
      throw new RialtoError('internal', { message: `${operation.name} does not stream` });
    return this.streamMessage(asked, operation.params);
  }

  /** In v1.0 a second cancel changes nothing; in v0.3 a canceled task is not cancelable (section 7.4.1). */
  private async cancelTask(
    { ctx, agent, version }: Asked,
    { id, metadata }: Extract<Operation, { name: 'CancelTask' }>['params'],
  ) {
    const before = version === '0.3' ? await this.tasks.visible(ctx, agent, id) : undefined;
    const task = await this.tasks.cancel(ctx, agent, id, metadata);
    if (before?.state === 'TASK_STATE_CANCELED')
      throw new RialtoError('task_not_cancelable', { message: 'the task is already canceled', data: { taskId: id } });
    return taskView(task);
  }

  private async sendMessage(asked: Asked, params: SendParams): Promise<SendValue> {
    const { ctx, agent, waitMs, gone } = asked;
    try {
      const sent = await this.sends.send(ctx, agent, await this.submission(asked, params), { waitMs, gone });
      const answer = 'message' in sent ? { message: withFacts(sent.message, asked.facts) } : sent;
      return params.reyn?.isAnswer ? { ...answer, answered: true } : answer;
    } catch (error) {
      // For Reyn a message to a task that waits for no answer is no error, but an answer that was not accepted
      // (RY-30).
      const { taskId } = params.message;
      const { code, message: reason } = RialtoError.from(error);
      if (!params.reyn?.isAnswer || taskId === undefined || code !== 'unsupported_operation') throw error;
      const task = await this.tasks.get(ctx, agent, taskId);
      return { task: taskView(task), answered: false, reason };
    }
  }

  private async *streamMessage(asked: Asked, params: SendParams): AsyncGenerator<StreamedEvent, void> {
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
      await this.webhooks.checkConfig(ctx, agent, pushConfig);
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
    return parseExact(body) as JsonObject;
  }
}

function withFacts(message: Message, facts: JsonObject | undefined): Message {
  return facts ? { ...message, metadata: { ...message.metadata, ...facts } } : message;
}

/** Throws when the card declares that the agent does not support the operation (RY-44). */
function requireAbility(agent: PublishedAgent, name: OperationName): void {
  if (!agent.streaming && (name === 'SendStreamingMessage' || name === 'SubscribeToTask'))
    throw new RialtoError('unsupported_operation', { message: 'this agent does not stream' });
  if (!agent.pushNotifications && name.includes('PushNotification'))
    throw new RialtoError('push_not_supported', { message: 'this agent does not send push notifications' });
}
