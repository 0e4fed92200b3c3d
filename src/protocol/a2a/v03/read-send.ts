import { olderWords } from '../request/aliases.js';
import { defined } from '../request/defined.js';
import type { DecodeOptions } from '../dialect.js';
import type { Fields } from '../request/fields.js';
import { limits } from '../request/limits.js';
import type { Message } from '../model.js';
import type { SendParams } from '../request/operations.js';
import { isProtoMessage, readMessage, textMessage } from './read-message.js';
import { readPushConfig } from './read-push.js';

// Placeholder for an absent message; the request is refused, so the placeholder is never used.
const noMessage: Message = { messageId: '', role: 'ROLE_USER', parts: [] };

/**
 * Reads MessageSendParams (v0.3 section 7.1.1) with the older members next to it. All spellings of "do not wait" set
 * one flag.
 */
export function readSend(params: Fields, options: DecodeOptions): SendParams {
  const newId = typeof params.value('message') === 'string' ? options.newId : undefined;
  const messageFields = newId ? undefined : params.requiredChild('message');
  const configuration = params.child('configuration');
  const words = olderWords(params, messageFields);
  const message = newId
    ? textMessage(params.requiredText('message'), newId)
    : messageFields
      ? readMessage(messageFields, options)
      : noMessage;
  const nonBlocking = configuration !== undefined && isNonBlocking(configuration, messageFields);
  return defined({
    message: withContextAndTask(params, message, words),
    acceptedOutputModes: configuration?.texts('acceptedOutputModes', limits.outputModes, { max: limits.mediaType }),
    pushConfig: readPush(params, configuration, words.webhookUrl),
    historyLength: configuration && historyLengthOf(configuration, messageFields),
    returnImmediately: words.returnImmediately || nonBlocking || undefined,
    metadata: params.json('metadata'),
    idempotencyKey: words.idempotencyKey,
    choiceId: words.choiceId,
    answerAs: words.answerAs,
    reyn: words.reyn,
  });
}

/**
 * True for `blocking: false` and for its v1.0 spelling. In JSON, an absent member means waiting. Writers of proto JSON
 * omit false members, so a configuration without `blocking` means false there.
 */
function isNonBlocking(configuration: Fields, message: Fields | undefined): boolean {
  const [blocking, returnImmediately] = [configuration.flag('blocking'), configuration.flag('returnImmediately')];
  const isProto = message !== undefined && isProtoMessage(message);
  return (
    returnImmediately === true ||
    blocking === false ||
    (isProto && blocking === undefined && returnImmediately === undefined)
  );
}

/** Reads the history length. In the v0.3 proto the field has no presence, so 0 means no limit. */
function historyLengthOf(configuration: Fields, message: Fields | undefined): number | undefined {
  const length = configuration.integer('historyLength', 0);
  return length === 0 && message !== undefined && isProtoMessage(message) ? undefined : length;
}

/** Sets the context and the task of the message from the members next to it. */
function withContextAndTask(
  params: Fields,
  message: Message,
  { contextId, taskId }: { contextId?: string; taskId?: string },
): Message {
  if (taskId !== undefined && message.taskId !== undefined && taskId !== message.taskId) {
    params.refuse('task_id', 'must be the taskId of the message');
  }
  if (taskId === undefined && (contextId === undefined || message.contextId !== undefined)) return message;
  return defined({ ...message, contextId: message.contextId ?? contextId, taskId: message.taskId ?? taskId });
}

function readPush(
  params: Fields,
  configuration: Fields | undefined,
  webhookUrl: string | undefined,
): SendParams['pushConfig'] {
  const name =
    configuration?.value('pushNotificationConfig') === undefined ? 'pushNotification' : 'pushNotificationConfig';
  const config = configuration?.child(name);
  if (config && webhookUrl !== undefined) params.refuse('webhook_url', 'cannot be combined with a push configuration');
  if (config) return { ...readPushConfig(config), format: 'v0.3' };
  return webhookUrl === undefined ? undefined : { url: webhookUrl, format: 'reyn' };
}
