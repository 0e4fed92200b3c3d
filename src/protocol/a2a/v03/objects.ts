import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import { defined } from '../request/defined.js';
import type {
  Artifact,
  Message,
  Part,
  Role,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatus,
  TaskStatusUpdateEvent,
} from '../model.js';
import { terminalStates, wordOf } from '../states.js';
import { unwrapUnknownPart } from '../unknown-part.js';
import { wrappedDataKey } from './data-flag.js';

/*
 * Encoders of the canonical objects in v0.3 (section 6): objects have `kind`; states and roles are lower-case words.
 * Members are optional as in the canonical model; no member is undefined.
 */

export function encodeTask({ id, contextId, status, artifacts, history, metadata }: Task): JsonObject {
  return json({
    kind: 'task',
    id,
    contextId,
    status: encodeStatus(status),
    artifacts: artifacts?.map(encodeArtifact),
    history: history?.map(encodeMessage),
    metadata,
  });
}

export function encodeMessage({ role, parts, ...message }: Message): JsonObject {
  return json({
    kind: 'message',
    messageId: message.messageId,
    contextId: message.contextId,
    taskId: message.taskId,
    role: encodeRole(role),
    parts: parts.map(encodePart),
    metadata: message.metadata,
    extensions: message.extensions,
    referenceTaskIds: message.referenceTaskIds,
  });
}

/**
 * Encodes a part: a text, a file of bytes or of a url, or data. Members that v0.3 does not have (the media type of a
 * text) are omitted.
 */
function encodePart(part: Part): JsonObject {
  const { text, raw, url, data, metadata } = part;
  if (text !== undefined) return json({ kind: 'text', text, metadata });
  if (raw !== undefined || url !== undefined) {
    const file = defined({ bytes: raw, uri: url, name: part.filename, mimeType: part.mediaType });
    return json({ kind: 'file', file, metadata });
  }
  const whole = unwrapUnknownPart(part);
  if (whole) return whole;
  if (isJsonObject(data)) return json({ kind: 'data', data, metadata });
  return json({ kind: 'data', data: { value: data ?? null }, metadata: { ...metadata, [wrappedDataKey]: true } });
}

/** Encodes the bare event with its `kind` (section 7.2.1); it is also the body of a v0.3 push notification. */
export function encodeEvent(event: StreamResponse): JsonObject {
  if ('task' in event) return encodeTask(event.task);
  if ('message' in event) return encodeMessage(event.message);
  return 'statusUpdate' in event ? encodeStatusUpdate(event.statusUpdate) : encodeArtifactUpdate(event.artifactUpdate);
}

/**
 * True when this turn has no more events (section 7.2.2): the task has ended or waits for its caller's answer. Waiting
 * for a credential is not final, because the task continues without a message (v1.0 section 7.6).
 */
export function isFinal({ state }: TaskStatus): boolean {
  return terminalStates.has(state) || state === 'TASK_STATE_INPUT_REQUIRED';
}

function encodeStatusUpdate({ taskId, contextId, status, metadata }: TaskStatusUpdateEvent): JsonObject {
  const final = isFinal(status);
  return json({ kind: 'status-update', taskId, contextId, status: encodeStatus(status), final, metadata });
}

function encodeArtifactUpdate({ artifact, ...event }: TaskArtifactUpdateEvent): JsonObject {
  return json({
    kind: 'artifact-update',
    taskId: event.taskId,
    contextId: event.contextId,
    artifact: encodeArtifact(artifact),
    append: event.append,
    lastChunk: event.lastChunk,
    metadata: event.metadata,
  });
}

function encodeStatus({ state, message, timestamp }: TaskStatus): JsonObject {
  return json({ state: wordOf(state), message: message && encodeMessage(message), timestamp });
}

function encodeArtifact({ artifactId, name, description, parts, metadata, extensions }: Artifact): JsonObject {
  return json({ artifactId, name, description, parts: parts.map(encodePart), metadata, extensions });
}

function encodeRole(role: Role): string {
  return role === 'ROLE_USER' ? 'user' : 'agent';
}

function json(members: object): JsonObject {
  return defined(members) as JsonObject;
}
