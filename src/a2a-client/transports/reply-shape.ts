import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { readReply } from '../../protocol/a2a/bridge-reply.js';
import { stateOf, wordOf } from '../../protocol/a2a/states.js';
import { member } from '../../protocol/a2a/members.js';

/*
 * Between the wire and the official SDK: its readers take nearly everything, and what older peers leave out they refuse. So
 * shapes are checked before it sees them, and the older spellings of the field are completed (requirements: C3, C4).
 */

/** True for a task or a message, bare or wrapped, whose parts are parts (F29). */
export function isReply(result: Json): boolean {
  // The v0.3 proto calls the message `msg`.
  const reply = isJsonObject(result) && isJsonObject(result.msg) ? result.msg : result;
  return readReply(reply) !== undefined;
}

/** True for one event of a stream of either version. */
export function isStreamEvent(event: Json): boolean {
  if (!isJsonObject(event)) return false;
  const [status, artifact] = [eventOf(event, 'statusUpdate'), eventOf(event, 'artifactUpdate')];
  if (status !== undefined) return isJsonObject(status) && isReply({ id: 'x', status: status.status ?? null });
  if (artifact === undefined) return isReply(event);
  const state = { state: 'working' };
  return isJsonObject(artifact) && isReply({ id: 'x', status: state, artifacts: [artifact.artifact ?? null] });
}

function eventOf(event: JsonObject, name: 'statusUpdate' | 'artifactUpdate'): Json | undefined {
  const kinds = { statusUpdate: 'status-update', artifactUpdate: 'artifact-update' };
  return event.kind === kinds[name] ? event : member(event, name);
}

/**
 * A v0.3 JSON-RPC result with what the SDK insists on: `kind` on tasks, messages and parts (`type` in older peers), a known
 * word for the state. The value is changed in place and returned; contents of data parts and metadata are left alone.
 */
export function completed(result: Json): Json {
  if (!isJsonObject(result)) return result;
  const inner = result.task ?? result.message;
  const object = inner !== undefined && result.kind === undefined && isJsonObject(inner) ? inner : result;
  if (isJsonObject(object.status)) {
    completeStatus(object.status);
    if (object.taskId === undefined) object.kind ??= 'task';
    object.contextId ||= '';
  } else if (Array.isArray(object.parts)) completeMessage(object);
  for (const [index, artifact] of [object.artifact, ...listOf(object.artifacts)].entries()) {
    if (isJsonObject(artifact)) completeArtifact(artifact, index);
  }
  for (const message of listOf(object.history)) if (isJsonObject(message)) completeMessage(message);
  return object;
}

function completeStatus(status: JsonObject): void {
  if (typeof status.state === 'string') status.state = wordOf(stateOf(status.state));
  const { message } = status;
  if (typeof message === 'string') status.message = { parts: [{ kind: 'text', text: message }] };
  if (isJsonObject(status.message)) completeMessage(status.message);
}

function completeMessage(message: JsonObject): void {
  message.kind = 'message';
  message.role ??= 'agent';
  message.messageId ||= 'unnamed';
  completeParts(message);
}

function completeArtifact(artifact: JsonObject, index: number): void {
  artifact.artifactId ||= `artifact-${index + 1}`;
  completeParts(artifact);
}

function completeParts(owner: JsonObject): void {
  for (const part of listOf(owner.parts)) {
    if (!isJsonObject(part)) continue;
    part.kind ??= part.type ?? ['text', 'data', 'file'].find((name) => name in part) ?? 'text';
  }
}

function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
