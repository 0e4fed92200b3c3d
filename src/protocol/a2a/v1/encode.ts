import type { Json, JsonObject } from '../../../kernel/json.js';
import type { EncodeOptions, OperationNamed, OperationValues } from '../dialect.js';
import type { StreamResponse } from '../model.js';
import type { OperationName } from '../request/operations.js';
import { shaped, type Shape } from '../shape.js';

/*
 * The canonical model is already v1.0, so encoding only removes members that v1.0 does not define: its schema allows no
 * others (section 4.1). Each shape lists the members of one object of a2a.proto.
 */

const part: Shape = {
  text: 'leaf',
  raw: 'leaf',
  url: 'leaf',
  data: 'json',
  metadata: 'leaf',
  filename: 'leaf',
  mediaType: 'leaf',
};
const message: Shape = {
  messageId: 'leaf',
  contextId: 'leaf',
  taskId: 'leaf',
  role: 'leaf',
  parts: [part],
  metadata: 'leaf',
  extensions: 'leaf',
  referenceTaskIds: 'leaf',
};
const artifact: Shape = {
  artifactId: 'leaf',
  name: 'leaf',
  description: 'leaf',
  parts: [part],
  metadata: 'leaf',
  extensions: 'leaf',
};
const status: Shape = { state: 'leaf', message, timestamp: 'leaf' };
const task: Shape = {
  id: 'leaf',
  contextId: 'leaf',
  status,
  artifacts: [artifact],
  history: [message],
  metadata: 'leaf',
};
const event: Shape = {
  task,
  message,
  statusUpdate: { taskId: 'leaf', contextId: 'leaf', status, metadata: 'leaf' },
  artifactUpdate: {
    taskId: 'leaf',
    contextId: 'leaf',
    artifact,
    append: 'leaf',
    lastChunk: 'leaf',
    metadata: 'leaf',
  },
};
const pushConfig: Shape = {
  id: 'leaf',
  taskId: 'leaf',
  url: 'leaf',
  token: 'leaf',
  authentication: { scheme: 'leaf', credentials: 'leaf' },
};

const results: { readonly [Name in OperationName]: (value: OperationValues[Name]) => unknown } = {
  SendMessage: (value) => shaped(value, { task, message }),
  SendStreamingMessage: (value) => shaped(value, event),
  GetTask: (value) => shaped(value, task),
  ListTasks: (page) => shaped(page, { tasks: [task], nextPageToken: 'leaf', pageSize: 'leaf', totalSize: 'leaf' }),
  CancelTask: (value) => shaped(value, task),
  SubscribeToTask: (value) => shaped(value, event),
  CreateTaskPushNotificationConfig: (value) => shaped(value, pushConfig),
  GetTaskPushNotificationConfig: (value) => shaped(value, pushConfig),
  ListTaskPushNotificationConfigs: ({ configs, nextPageToken }) => ({
    configs: configs.map((config) => shaped(config, pushConfig)),
    nextPageToken: nextPageToken ?? '',
  }),
  DeleteTaskPushNotificationConfig: (): JsonObject => ({}),
  GetExtendedAgentCard: (card) => card,
};

/**
 * Encodes the result of an operation in JSON-RPC, which is also the body of its REST answer (section 3.1). A deletion
 * yields an empty object.
 */
export function encodeResult<Name extends OperationName>(
  operation: OperationNamed<Name>,
  value: OperationValues[Name],
  _options?: EncodeOptions,
): Json {
  return results[operation.name](value) as Json;
}

/** Encodes a StreamResponse (section 3.2.3). */
export function encodeEvent(value: StreamResponse): Json {
  return shaped(value, event) as unknown as Json;
}
