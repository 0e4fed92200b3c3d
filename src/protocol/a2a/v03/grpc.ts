import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import type { Schema } from '../../protobuf/codec.js';
import { invalidParams } from '../request/decoding.js';
import type { DecodeOptions } from '../dialect.js';
import type { Decoded, OperationName } from '../request/operations.js';
import { withProtoSchemes } from './card.js';
import * as proto from './proto-schema.js';
import { decodeRestParams } from './rest.js';

export const service = 'a2a.v1.A2AService';

interface Rpc {
  readonly name: OperationName;
  readonly request: Schema;
  readonly response: Schema;
}

/** The rpcs of v0.3 (section 3.2.2); it has no rpc that lists tasks. */
export const rpcs: Readonly<Record<string, Rpc>> = {
  SendMessage: { name: 'SendMessage', request: proto.sendRequest, response: proto.sendResponse },
  SendStreamingMessage: { name: 'SendStreamingMessage', request: proto.sendRequest, response: proto.streamResponse },
  GetTask: { name: 'GetTask', request: proto.getRequest, response: proto.task },
  CancelTask: { name: 'CancelTask', request: proto.nameRequest, response: proto.task },
  TaskSubscription: { name: 'SubscribeToTask', request: proto.nameRequest, response: proto.streamResponse },
  CreateTaskPushNotificationConfig: {
    name: 'CreateTaskPushNotificationConfig',
    request: proto.createConfigRequest,
    response: proto.pushConfig,
  },
  GetTaskPushNotificationConfig: {
    name: 'GetTaskPushNotificationConfig',
    request: proto.nameRequest,
    response: proto.pushConfig,
  },
  ListTaskPushNotificationConfig: {
    name: 'ListTaskPushNotificationConfigs',
    request: proto.configsRequest,
    response: proto.pushConfigs,
  },
  DeleteTaskPushNotificationConfig: {
    name: 'DeleteTaskPushNotificationConfig',
    request: proto.nameRequest,
    response: {},
  },
  GetAgentCard: { name: 'GetExtendedAgentCard', request: {}, response: proto.card },
};

const ofTask = /^tasks\/([^/]+)$/;
const ofConfig = /^tasks\/([^/]+)\/pushNotificationConfigs\/([^/]+)$/;
const ofConfigs = /^tasks\/([^/]+)(?:\/pushNotificationConfigs)?$/;

interface Naming {
  readonly field: 'name' | 'parent';
  readonly shape: RegExp;
  readonly params: readonly string[];
  readonly example: string;
}

const task: Naming = { field: 'name', shape: ofTask, params: ['id'], example: 'tasks/{id}' };
const parent: Naming = { field: 'parent', shape: ofConfigs, params: ['taskId'], example: 'tasks/{id}' };
const config: Naming = {
  field: 'name',
  shape: ofConfig,
  params: ['taskId', 'pushNotificationConfigId'],
  example: 'tasks/{id}/pushNotificationConfigs/{id}',
};
const namings: Partial<Record<OperationName, Naming>> = {
  GetTask: task,
  CancelTask: task,
  SubscribeToTask: task,
  CreateTaskPushNotificationConfig: parent,
  ListTaskPushNotificationConfigs: parent,
  GetTaskPushNotificationConfig: config,
  DeleteTaskPushNotificationConfig: config,
};

/** Decodes a request in the JSON of its proto, which names tasks and configurations as resources. */
export function decodeRpc(name: OperationName, request: JsonObject, options: DecodeOptions): Decoded {
  const naming = namings[name];
  if (!naming) return decodeRestParams(name, {}, request, options);
  const { [naming.field]: resource, ...rest } = request;
  const found = typeof resource === 'string' ? naming.shape.exec(resource) : null;
  if (!found) return invalidParams([{ field: naming.field, description: `must be ${naming.example}` }]);
  const path = Object.fromEntries(naming.params.map((param, index) => [param, found[index + 1]!]));
  return decodeRestParams(name, path, rest, options);
}

/**
 * Converts a v0.3 card to the JSON of its proto, in which a security scheme is a named member and a requirement is an
 * object.
 */
export function protoCard(card: JsonObject): JsonObject {
  return {
    ...withProtoSchemes(card),
    security: requirementsOf(card.security),
    skills: objectsIn(card.skills).map((skill) => ({ ...skill, security: requirementsOf(skill.security) })),
  };
}

function requirementsOf(list: Json | undefined): Json[] {
  return objectsIn(list).map((requirement) => ({
    schemes: Object.fromEntries(Object.entries(requirement).map(([name, scopes]) => [name, { list: scopes }])),
  }));
}

function objectsIn(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
