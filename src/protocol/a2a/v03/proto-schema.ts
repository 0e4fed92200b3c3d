import type { Schema } from '../../protobuf/codec.js';
import {
  bytes,
  enumOf,
  flag,
  int,
  listOf,
  mapOf,
  of,
  oneOf,
  optional,
  struct,
  text,
  texts,
  time,
} from '../../protobuf/fields.js';
import { extension, page, provider, requirement, role, securityScheme, skill } from '../proto-common.js';

/*
 * The messages of a2a.proto, package a2a.v1 (v0.3): with its field numbers, and with names as ProtoJSON writes them
 * (`request`, `update` and `msg` are `message` there). Later 0.3 releases added the file name and the metadata of a
 * part; readers that do not know these fields skip them.
 */

const taskState = enumOf(
  'TASK_STATE_',
  ...['UNSPECIFIED', 'SUBMITTED', 'WORKING', 'COMPLETED', 'FAILED', 'CANCELLED', 'INPUT_REQUIRED', 'REJECTED'],
  'AUTH_REQUIRED',
);

const part: Schema = {
  text: optional(text(1)),
  file: of(2, {
    fileWithUri: optional(text(1)),
    fileWithBytes: optional(bytes(2)),
    mimeType: text(3),
    name: text(4),
  }),
  data: of(3, { data: struct(1) }),
  metadata: struct(4),
};
const message: Schema = {
  messageId: text(1),
  contextId: text(2),
  taskId: text(3),
  role: oneOf(4, role),
  content: listOf(5, part),
  metadata: struct(6),
  extensions: texts(7),
};
const artifact: Schema = {
  artifactId: text(1),
  name: text(3),
  description: text(4),
  parts: listOf(5, part),
  metadata: struct(6),
  extensions: texts(7),
};
const status: Schema = { state: oneOf(1, taskState), message: of(2, message), timestamp: time(3) };

export const task: Schema = {
  id: text(1),
  contextId: text(2),
  status: of(3, status),
  artifacts: listOf(4, artifact),
  history: listOf(5, message),
  metadata: struct(6),
};
export const sendResponse: Schema = { task: of(1, task), message: of(2, message) };
export const streamResponse: Schema = {
  ...sendResponse,
  statusUpdate: of(3, {
    taskId: text(1),
    contextId: text(2),
    status: of(3, status),
    final: flag(4),
    metadata: struct(5),
  }),
  artifactUpdate: of(4, {
    taskId: text(1),
    contextId: text(2),
    artifact: of(3, artifact),
    append: flag(4),
    lastChunk: flag(5),
    metadata: struct(6),
  }),
};

const pushNotificationConfig: Schema = {
  id: text(1),
  url: text(2),
  token: text(3),
  authentication: of(4, { schemes: texts(1), credentials: text(2) }),
};
export const pushConfig: Schema = { name: text(1), pushNotificationConfig: of(2, pushNotificationConfig) };
export const pushConfigs: Schema = { configs: listOf(1, pushConfig), nextPageToken: text(2) };

export const sendRequest: Schema = {
  message: of(1, message),
  configuration: of(2, {
    acceptedOutputModes: texts(1),
    pushNotification: of(2, pushNotificationConfig),
    historyLength: int(3),
    blocking: flag(4),
  }),
  metadata: struct(3),
};
export const getRequest: Schema = { name: text(1), historyLength: int(2) };
/** Names a task to cancel or to follow, or a configuration to get or to delete. */
export const nameRequest: Schema = { name: text(1) };
export const createConfigRequest: Schema = { parent: text(1), configId: text(2), config: of(3, pushConfig) };
export const configsRequest: Schema = { parent: text(1), ...page };

export const card: Schema = {
  name: text(1),
  description: text(2),
  url: text(3),
  provider: of(4, provider),
  version: text(5),
  documentationUrl: text(6),
  capabilities: of(7, { streaming: flag(1), pushNotifications: flag(2), extensions: listOf(3, extension(struct(4))) }),
  securitySchemes: mapOf(8, { message: securityScheme }),
  security: listOf(9, requirement),
  defaultInputModes: texts(10),
  defaultOutputModes: texts(11),
  skills: listOf(12, skill('security')),
  supportsAuthenticatedExtendedCard: flag(13),
  preferredTransport: text(14),
  additionalInterfaces: listOf(15, { url: text(1), transport: text(2) }),
  protocolVersion: text(16),
  signatures: listOf(17, { protected: text(1), signature: text(2), header: struct(3) }),
};
