import { decodeParams, methodNotFound } from '../request/decoding.js';
import { defined } from '../request/defined.js';
import type { Fields } from '../request/fields.js';
import { limits } from '../request/limits.js';
import { listFields, pageFields } from '../request/list-fields.js';
import { lookupRule } from '../request/message-fields.js';
import type { Message } from '../model.js';
import type { Decoded, Operation, OperationName, PushConfig, SendParams } from '../request/operations.js';
import { pushConfigFields, schemeRule } from '../request/push-fields.js';
import { readMessage } from './message.js';

type Reader<Name extends OperationName> = (fields: Fields) => Operation & { readonly name: Name };

// The JSON-RPC methods have the names of the operations (section 5.3).
const readers: { readonly [Name in OperationName]: Reader<Name> } = {
  SendMessage: (fields) => ({ name: 'SendMessage', params: readSend(fields) }),
  SendStreamingMessage: (fields) => ({ name: 'SendStreamingMessage', params: readSend(fields) }),
  GetTask: (fields) => ({
    name: 'GetTask',
    params: defined({ id: readId(fields, 'id'), historyLength: fields.integer('historyLength', 0) }),
  }),
  ListTasks: (fields) => ({ name: 'ListTasks', params: listFields(fields) }),
  CancelTask: (fields) => ({
    name: 'CancelTask',
    params: defined({ id: readId(fields, 'id'), metadata: fields.json('metadata') }),
  }),
  SubscribeToTask: (fields) => ({ name: 'SubscribeToTask', params: { id: readId(fields, 'id') } }),
  CreateTaskPushNotificationConfig: (fields) => ({
    name: 'CreateTaskPushNotificationConfig',
    params: { taskId: readId(fields, 'taskId'), ...readPushConfig(fields), format: 'v1' },
  }),
  GetTaskPushNotificationConfig: (fields) => ({ name: 'GetTaskPushNotificationConfig', params: readConfigId(fields) }),
  ListTaskPushNotificationConfigs: (fields) => ({
    name: 'ListTaskPushNotificationConfigs',
    params: defined({ taskId: readId(fields, 'taskId'), ...pageFields(fields) }),
  }),
  DeleteTaskPushNotificationConfig: (fields) => ({
    name: 'DeleteTaskPushNotificationConfig',
    params: readConfigId(fields),
  }),
  GetExtendedAgentCard: () => ({ name: 'GetExtendedAgentCard', params: {} }),
};

/**
 * Decodes a JSON-RPC method of v1.0 with its params (sections 3.1 and 9.4), or the merged path, query and body of a
 * REST request.
 */
export function decode(method: string, params: unknown): Decoded {
  if (!Object.hasOwn(readers, method)) return methodNotFound(method);
  return decodeParams(params, '1.0', readers[method as OperationName]);
}

// Placeholder for an absent message; the request is refused, so the placeholder is never used.
const noMessage: Message = { messageId: '', role: 'ROLE_USER', parts: [] };

function readSend(fields: Fields): SendParams {
  const message = fields.requiredChild('message');
  const configuration = fields.child('configuration');
  const push = configuration?.child('taskPushNotificationConfig');
  return defined({
    message: message ? readMessage(message) : noMessage,
    acceptedOutputModes: configuration?.texts('acceptedOutputModes', limits.outputModes, { max: limits.mediaType }),
    pushConfig: push && { ...readPushConfig(push), format: 'v1' as const },
    historyLength: configuration?.integer('historyLength', 0),
    returnImmediately: configuration?.flag('returnImmediately') || undefined,
    metadata: fields.json('metadata'),
    idempotencyKey: fields.text('idempotencyKey', { max: limits.idempotencyKey }),
  });
}

function readPushConfig(fields: Fields): Omit<PushConfig, 'taskId'> {
  return pushConfigFields(fields, (authentication) => authentication.requiredText('scheme', schemeRule));
}

function readConfigId(fields: Fields): { taskId: string; id: string } {
  return { taskId: readId(fields, 'taskId'), id: readId(fields, 'id') };
}

function readId(fields: Fields, name: string): string {
  return fields.requiredText(name, lookupRule);
}
