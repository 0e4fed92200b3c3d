import { isJsonObject } from '../../../kernel/json.js';
import { defined } from './defined.js';
import type { Fields } from './fields.js';
import { limits } from './limits.js';
import { idRule } from './message-fields.js';
import type { OperationName, PushFormat, SendParams } from './operations.js';

/**
 * Spellings from before v0.3 and variants of it, used by agent-native, Reyn, rine and the MCP bridge. They are read by
 * the v0.3 dialect, and the answers use them too.
 */

/** The meaning of a JSON-RPC method: its operation, and the additional meaning of its older name. */
export interface MethodMeaning {
  readonly name: OperationName;
  /** The format of push bodies for configurations created by this method. */
  readonly format?: PushFormat;
  /** An ended task is answered with its snapshot (RI-21). */
  readonly endedToo?: true;
  /** The configuration id may be absent: the task's only configuration is meant. */
  readonly onlyConfig?: true;
  /** The callers do not know the state `rejected`: for them the task failed (RI-36). */
  readonly rejectedFails?: true;
}

/** Method names that v0.3 itself does not define. */
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

/**
 * Older members of the params of a send. `taskId` sets the task of the message; `webhookUrl` is where updates are
 * posted.
 */
export interface OlderWords extends Pick<SendParams, 'answerAs' | 'choiceId' | 'idempotencyKey' | 'reyn'> {
  readonly returnImmediately: boolean;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly webhookUrl?: string;
}

/**
 * Reads the older members of `message/send`: `async` (AN-12), `async_mode`, `webhook_url`, `task_id`, `choice_id`
 * (RY-14, RY-15, RY-27, RY-29), `contextId` (AN-11) and `idempotencyKey` (AN-53) next to the message. Reyn's names are
 * read literally: `taskId` in camel case is the session of the MCP bridge (RE-20) and not a task of the gateway; it is
 * ignored, and so is `correlationId`.
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

/** Reads `choice_id` from the metadata. Metadata is free-form, so a value that is not an id is ignored, not refused. */
function choiceInMetadata(message: Fields | undefined): string | undefined {
  const metadata = message?.value('metadata');
  const choice = isJsonObject(metadata) ? metadata.choice_id : undefined;
  return typeof choice === 'string' && choice !== '' && choice.length <= limits.id ? choice : undefined;
}
