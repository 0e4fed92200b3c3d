import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { defined } from '../request/defined.js';
import type { OperationNamed, OperationValues } from '../dialect.js';
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../model.js';
import type { OperationName, PushConfig } from '../request/operations.js';
import { withProtoSchemes } from './card.js';
import { wrappedDataKey } from './data-flag.js';
import { encodePushConfig } from './encode.js';
import { isFinal } from './objects.js';

/*
 * Encoders of the canonical objects in the JSON of the v0.3 proto (a2a.proto of tag v0.3.0), which REST uses in
 * practice: `content` for the parts of a message, enums by their proto names, files and data nested one level deeper,
 * and members instead of `kind`.
 */

type Encoder<Name extends OperationName> = (value: OperationValues[Name]) => Json;

const results: { readonly [Name in OperationName]: Encoder<Name> } = {
  SendMessage: encodeProtoEvent,
  SendStreamingMessage: encodeProtoEvent,
  GetTask: protoTask,
  ListTasks: ({ tasks, nextPageToken, pageSize, totalSize }) => ({
    tasks: tasks.map(protoTask),
    nextPageToken,
    pageSize,
    totalSize,
  }),
  CancelTask: protoTask,
  SubscribeToTask: encodeProtoEvent,
  CreateTaskPushNotificationConfig: protoPushConfig,
  GetTaskPushNotificationConfig: protoPushConfig,
  ListTaskPushNotificationConfigs: ({ configs, nextPageToken = '' }) => ({
    configs: configs.map(protoPushConfig),
    nextPageToken,
  }),
  DeleteTaskPushNotificationConfig: () => ({}),
  GetExtendedAgentCard: withProtoSchemes,
};

/** Encodes the body of a v0.3 REST answer. */
export function encodeProtoResult<Name extends OperationName>(
  operation: OperationNamed<Name>,
  value: OperationValues[Name],
): Json {
  return results[operation.name](value);
}

/** Encodes a StreamResponse of the v0.3 proto. Its field `msg` is `message` in JSON. */
export function encodeProtoEvent(event: StreamResponse): JsonObject {
  if ('task' in event) return { task: protoTask(event.task) };
  if ('message' in event) return { message: protoMessage(event.message) };
  if ('statusUpdate' in event) {
    const { taskId, contextId, status, metadata } = event.statusUpdate;
    return { statusUpdate: json({ taskId, contextId, status: protoStatus(status), final: isFinal(status), metadata }) };
  }
  const { artifact, taskId, contextId, append, lastChunk, metadata } = event.artifactUpdate;
  return {
    artifactUpdate: json({ taskId, contextId, artifact: protoArtifact(artifact), append, lastChunk, metadata }),
  };
}

function protoTask({ id, contextId, status, artifacts, history, metadata }: Task): JsonObject {
  return json({
    id,
    contextId,
    status: protoStatus(status),
    artifacts: artifacts?.map(protoArtifact),
    history: history?.map(protoMessage),
    metadata,
  });
}

function protoStatus({ state, message, timestamp }: TaskStatus): JsonObject {
  // The v0.3 proto spells this state with two L.
  const older = state === 'TASK_STATE_CANCELED' ? 'TASK_STATE_CANCELLED' : state;
  return json({ state: older, message: message && protoMessage(message), timestamp });
}

function protoMessage({ messageId, contextId, taskId, role, parts, metadata, extensions }: Message): JsonObject {
  return json({ messageId, contextId, taskId, role, content: parts.map(protoPart), metadata, extensions });
}

function protoArtifact({ artifactId, name, description, parts, metadata, extensions }: Artifact): JsonObject {
  return json({ artifactId, name, description, parts: parts.map(protoPart), metadata, extensions });
}

function protoPart({ text, raw, url, data, filename, mediaType, metadata }: Part): JsonObject {
  if (text !== undefined) return json({ text, metadata });
  if (raw !== undefined || url !== undefined) {
    const file = defined({ fileWithBytes: raw, fileWithUri: url, mimeType: mediaType, name: filename });
    return json({ file, metadata });
  }
  if (isJsonObject(data)) return json({ data: { data }, metadata });
  return json({ data: { data: { value: data ?? null } }, metadata: { ...metadata, [wrappedDataKey]: true } });
}

/** Encodes a push configuration with its resource name `tasks/{id}/pushNotificationConfigs/{id}`. */
function protoPushConfig({ taskId = '', ...config }: PushConfig): JsonObject {
  const name = `tasks/${taskId}/pushNotificationConfigs/${config.id ?? ''}`;
  return { name, pushNotificationConfig: encodePushConfig(config) };
}

function json(members: object): JsonObject {
  return defined(members) as JsonObject;
}
