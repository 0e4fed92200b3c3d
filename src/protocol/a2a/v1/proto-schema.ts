import type { Schema } from '../../protobuf/codec.js';
import {
  anyValue,
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
 * The messages of a2a.proto, package lf.a2a.v1 (v1.0): with its field numbers, and with names as ProtoJSON writes them.
 */

const taskState = enumOf(
  'TASK_STATE_',
  ...['UNSPECIFIED', 'SUBMITTED', 'WORKING', 'COMPLETED', 'FAILED', 'CANCELED', 'INPUT_REQUIRED', 'REJECTED'],
  'AUTH_REQUIRED',
);

const part: Schema = {
  text: optional(text(1)),
  raw: optional(bytes(2)),
  url: optional(text(3)),
  data: optional(anyValue(4)),
  metadata: struct(5),
  filename: text(6),
  mediaType: text(7),
};
const message: Schema = {
  messageId: text(1),
  contextId: text(2),
  taskId: text(3),
  role: oneOf(4, role),
  parts: listOf(5, part),
  metadata: struct(6),
  extensions: texts(7),
  referenceTaskIds: texts(8),
};
const artifact: Schema = {
  artifactId: text(1),
  name: text(2),
  description: text(3),
  parts: listOf(4, part),
  metadata: struct(5),
  extensions: texts(6),
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
  statusUpdate: of(3, { taskId: text(1), contextId: text(2), status: of(3, status), metadata: struct(4) }),
  artifactUpdate: of(4, {
    taskId: text(1),
    contextId: text(2),
    artifact: of(3, artifact),
    append: flag(4),
    lastChunk: flag(5),
    metadata: struct(6),
  }),
};
export const listResponse: Schema = {
  tasks: listOf(1, task),
  nextPageToken: text(2),
  pageSize: int(3),
  totalSize: int(4),
};

export const pushConfig: Schema = {
  tenant: text(1),
  id: text(2),
  taskId: text(3),
  url: text(4),
  token: text(5),
  authentication: of(6, { scheme: text(1), credentials: text(2) }),
};
export const pushConfigs: Schema = { configs: listOf(1, pushConfig), nextPageToken: text(2) };

export const sendRequest: Schema = {
  tenant: text(1),
  message: of(2, message),
  configuration: of(3, {
    acceptedOutputModes: texts(1),
    taskPushNotificationConfig: of(2, pushConfig),
    historyLength: optional(int(3)),
    returnImmediately: flag(4),
  }),
  metadata: struct(4),
};
export const getRequest: Schema = { tenant: text(1), id: text(2), historyLength: optional(int(3)) };
export const listRequest: Schema = {
  tenant: text(1),
  contextId: text(2),
  status: oneOf(3, taskState),
  pageSize: optional(int(4)),
  pageToken: text(5),
  historyLength: optional(int(6)),
  statusTimestampAfter: time(7),
  includeArtifacts: optional(flag(8)),
};
export const cancelRequest: Schema = { tenant: text(1), id: text(2), metadata: struct(3) };
export const subscribeRequest: Schema = { tenant: text(1), id: text(2) };
export const configRequest: Schema = { tenant: text(1), taskId: text(2), id: text(3) };
export const configsRequest: Schema = { taskId: text(1), ...page, tenant: text(4) };
export const cardRequest: Schema = { tenant: text(1) };

export const card: Schema = {
  name: text(1),
  description: text(2),
  supportedInterfaces: listOf(3, {
    url: text(1),
    protocolBinding: text(2),
    tenant: text(3),
    protocolVersion: text(4),
  }),
  provider: of(4, provider),
  version: text(5),
  documentationUrl: optional(text(6)),
  capabilities: of(7, {
    streaming: optional(flag(1)),
    pushNotifications: optional(flag(2)),
    extensions: listOf(3, extension(struct(4))),
    extendedAgentCard: optional(flag(4)),
  }),
  securitySchemes: mapOf(8, { message: securityScheme }),
  securityRequirements: listOf(9, requirement),
  defaultInputModes: texts(10),
  defaultOutputModes: texts(11),
  skills: listOf(12, skill('securityRequirements')),
  signatures: listOf(13, { protected: text(1), signature: text(2), header: struct(3) }),
  iconUrl: optional(text(14)),
};
