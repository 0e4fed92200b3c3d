import { isJsonObject } from '../../../kernel/json.js';
import { defined } from './defined.js';
import type { Fields } from './fields.js';
import { limits } from './limits.js';
import { idRule } from './message-fields.js';
import type { OperationName, PushFormat, SendParams } from './operations.js';

/*
 * Spellings from before v0.3 and beside it, in the field at agent-native, Reyn, rine and the MCP bridge (requirements 1.6: C1, C3, C11).
 * They are read on the v0.3 dialect and answered in it.
 */

/** A method of JSON-RPC: its operation, and what its older name says beyond it. */
export interface MethodMeaning {
  readonly name: OperationName;
  /** The words of push bodies for configurations set by this name (C16). */
  readonly format?: PushFormat;
  /** An ended task is answered with its snapshot (RI-21). */
  readonly endedToo?: true;
  /** A configuration may stay unnamed: the task's only one is meant. */
  readonly onlyConfig?: true;
  /** Its callers do not know that a task may be rejected: to them it failed (RI-36). */
  readonly rejectedFails?: true;
}

/** Names of methods that v0.3 itself does not have. */
export const olderMethods: Readonly<Record<string, MethodMeaning>> = {
  'tasks/send': { name: 'SendMessage', rejectedFails: true },
  'tasks/sendSubscribe': { name: 'SendStreamingMessage', rejectedFails: true },
  'tasks/subscribe': { name: 'SubscribeToTask', endedToo: true, rejectedFails: true },
  'tasks/pushNotification/set': { name: 'CreateTaskPushNotificationConfig', format: 'task' },
  'tasks/pushNotification/get': { name: 'GetTaskPushNotificationConfig' },
  'tasks/pushNotification/list': { name: 'ListTaskPushNotificationConfigs' },
  'tasks/pushNotification/delete': { name: 'DeleteTaskPushNotificationConfig', onlyConfig: true },
  'agent/authenticatedExtendedCard': { name: 'GetExtendedAgentCard' },
};

/** What the params of a send say in older words; `taskId` is to be that of the message, `url` the place to post its updates to. */
export interface OlderWords extends Pick<SendParams, 'answerAs' | 'choiceId' | 'idempotencyKey' | 'reyn'> {
  readonly returnImmediately: boolean;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly webhookUrl?: string;
}

/**
 * The older words of `message/send`: `async` (AN-12), `async_mode`, `webhook_url`, `task_id`, `choice_id` (RY-14, RY-15, RY-27, RY-29),
 * `contextId` (AN-11) and `idempotencyKey` (AN-53) beside the message. Reyn's are literal: `taskId` in camel case is the session of the
 * MCP bridge (RE-20) and no task of ours; it is not read, and neither is `correlationId`.
 */
export function olderWords(params: Fields, message: Fields | undefined): OlderWords {
  const isAsync = params.flag('async') ?? false;
  const isAsyncMode = params.flag('async_mode') ?? false;
  const webhookUrl = params.text('webhook_url', { max: limits.url });
  const taskId = params.text('task_id', idRule);
  const topChoice = params.text('choice_id', idRule);
  const choiceId = topChoice ?? choiceInMetadata(message);
  const isReyn = isAsyncMode || [webhookUrl, taskId, choiceId].some((word) => word !== undefined);
  const isAnswer = taskId !== undefined || (choiceId !== undefined && message?.value('taskId') !== undefined);
  return defined({
    returnImmediately: isAsync || isAsyncMode || webhookUrl !== undefined,
    answerAs: isAsync ? ('working' as const) : undefined,
    contextId: params.text('contextId', idRule),
    taskId,
    webhookUrl,
    choiceId,
    idempotencyKey: params.text('idempotencyKey', { max: limits.idempotencyKey }),
    reyn: isReyn ? { isAnswer } : undefined,
  });
}

/** Metadata is free, so what is no id there is no mistake. */
function choiceInMetadata(message: Fields | undefined): string | undefined {
  const metadata = message?.value('metadata');
  const choice = isJsonObject(metadata) ? metadata.choice_id : undefined;
  return typeof choice === 'string' && choice !== '' && choice.length <= limits.id ? choice : undefined;
}
