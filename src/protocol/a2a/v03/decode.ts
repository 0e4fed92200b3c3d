import { olderMethods, type MethodMeaning } from '../request/aliases.js';
import { decodeParams, methodNotFound } from '../request/decoding.js';
import { defined } from '../request/defined.js';
import type { DecodeOptions, OperationNamed } from '../dialect.js';
import type { Fields } from '../request/fields.js';
import { listFields, pageFields } from '../request/list-fields.js';
import { lookupRule } from '../request/message-fields.js';
import type { Decoded, OperationName } from '../request/operations.js';
import { readPushConfig } from './read-push.js';
import { readSend } from './read-send.js';

type Reader<Name extends OperationName> = (
  fields: Fields,
  context: MethodMeaning & DecodeOptions,
) => OperationNamed<Name>;

const methods: Readonly<Record<string, MethodMeaning>> = {
  'message/send': { name: 'SendMessage' },
  'message/stream': { name: 'SendStreamingMessage' },
  'tasks/get': { name: 'GetTask' },
  'tasks/cancel': { name: 'CancelTask' },
  'tasks/resubscribe': { name: 'SubscribeToTask' },
  'tasks/pushNotificationConfig/set': { name: 'CreateTaskPushNotificationConfig' },
  'tasks/pushNotificationConfig/get': { name: 'GetTaskPushNotificationConfig' },
  'tasks/pushNotificationConfig/list': { name: 'ListTaskPushNotificationConfigs' },
  'tasks/pushNotificationConfig/delete': { name: 'DeleteTaskPushNotificationConfig' },
  'agent/getAuthenticatedExtendedCard': { name: 'GetExtendedAgentCard' },
  ...olderMethods,
};

const readers: { readonly [Name in OperationName]: Reader<Name> } = {
  SendMessage: (fields, options) => ({ name: 'SendMessage', params: readSend(fields, options) }),
  SendStreamingMessage: (fields, options) => ({ name: 'SendStreamingMessage', params: readSend(fields, options) }),
  GetTask: (fields) => ({
    name: 'GetTask',
    params: defined({ id: readTaskId(fields), historyLength: fields.integer('historyLength', 0) }),
  }),
  // Only REST has it (v0.3 section 7.4).
  ListTasks: (fields) => ({ name: 'ListTasks', params: listFields(fields) }),
  CancelTask: (fields) => ({
    name: 'CancelTask',
    params: defined({ id: readTaskId(fields), metadata: fields.json('metadata') }),
  }),
  SubscribeToTask: (fields, { endedToo }) => ({
    name: 'SubscribeToTask',
    params: defined({ id: readTaskId(fields), endedToo }),
  }),
  CreateTaskPushNotificationConfig: (fields, { format = 'v0.3' }) => {
    const config = fields.requiredChild('pushNotificationConfig');
    const read = config ? readPushConfig(config) : { url: '' };
    return {
      name: 'CreateTaskPushNotificationConfig',
      params: { taskId: readTaskId(fields, 'taskId'), ...read, format },
    };
  },
  GetTaskPushNotificationConfig: (fields) => ({
    name: 'GetTaskPushNotificationConfig',
    params: readConfigId(fields, { isRequired: false }),
  }),
  ListTaskPushNotificationConfigs: (fields) => ({
    name: 'ListTaskPushNotificationConfigs',
    params: defined({ taskId: readTaskId(fields), ...pageFields(fields) }),
  }),
  DeleteTaskPushNotificationConfig: (fields, { onlyConfig = false }) => ({
    name: 'DeleteTaskPushNotificationConfig',
    params: readConfigId(fields, { isRequired: !onlyConfig }),
  }),
  GetExtendedAgentCard: () => ({ name: 'GetExtendedAgentCard', params: {} }),
};

/** Decodes a JSON-RPC method of v0.3 (section 7), or an older name of one, with its params. */
export function decode(method: string, params: unknown, options: DecodeOptions = {}): Decoded {
  const known = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!known) return methodNotFound(method);
  const decoded = decodeAs(known, params, options);
  return decoded.ok && known.rejectedFails ? { ...decoded, rejectedFails: true } : decoded;
}

/** True when the answer of a method, under any of its names, is an event stream. */
export function isStreamMethod(method: string): boolean {
  const name = Object.hasOwn(methods, method) ? methods[method]!.name : undefined;
  return name === 'SendStreamingMessage' || name === 'SubscribeToTask';
}

/** Decodes the params of a known operation, as REST needs it. */
export function decodeAs(method: MethodMeaning, params: unknown, options: DecodeOptions): Decoded {
  const context = { ...method, ...options };
  return decodeParams(params, '0.3', (fields) => readers[method.name](fields, context));
}

/** Reads the id of the task: `id`, or `taskId` in the set method. Both names are accepted in all methods. */
function readTaskId(fields: Fields, name: 'id' | 'taskId' = 'id'): string {
  const given = fields.value('taskId') !== undefined ? 'taskId' : fields.value('id') !== undefined ? 'id' : name;
  return fields.requiredText(given, lookupRule);
}

/**
 * Reads the ids of a task and a configuration. The configuration is `pushNotificationConfigId`; it may be `id` when the
 * task is `taskId`, as in v1.0.
 */
function readConfigId(fields: Fields, { isRequired }: { isRequired: boolean }): { taskId: string; id?: string } {
  const isFlat = fields.value('taskId') !== undefined && fields.value('pushNotificationConfigId') === undefined;
  const id = fields.text(isFlat ? 'id' : 'pushNotificationConfigId', lookupRule);
  if (id === undefined && isRequired) fields.refuse('pushNotificationConfigId', 'is required');
  return defined({ taskId: readTaskId(fields), id });
}
