import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { partsOf } from '../../protocol/a2a/remote/remote-parts.js';
import { readReply } from '../../protocol/a2a/remote/bridge-reply.js';
import { replyFault } from '../../protocol/a2a/remote/reply-fault.js';
import { wrapUnknownPart } from '../../protocol/a2a/unknown-part.js';
import { keepPause } from '../../protocol/a2a/conversation/paused.js';
import { stateOf, wordOf } from '../../protocol/a2a/states.js';
import { member } from '../../protocol/a2a/members.js';

// These functions run between the wire and the official SDK. Its readers accept nearly everything, and refuse answers
// that lack members which older peers leave out. So shapes are checked before the SDK sees them, and older spellings
// are completed.

/** Returns why a result is not a valid task or message, bare or wrapped; undefined for a valid one. */
export function faultOfReply(result: Json): string | undefined {
  // The v0.3 proto calls the message `msg`.
  const reply = isJsonObject(result) && isJsonObject(result.msg) ? result.msg : result;
  return readReply(reply) ? undefined : replyFault(reply);
}

/** Returns why a value is not a stream event of either version; undefined for a valid one. */
export function faultOfEvent(event: Json): string | undefined {
  if (!isJsonObject(event)) return 'it is no object';
  const [status, artifact] = [eventOf(event, 'statusUpdate'), eventOf(event, 'artifactUpdate')];
  if (status !== undefined)
    return isJsonObject(status)
      ? faultOfReply({ id: 'x', status: status.status ?? false })
      : 'statusUpdate is no object';
  if (artifact === undefined) return faultOfReply(event);
  if (!isJsonObject(artifact)) return 'artifactUpdate is no object';
  const fault = faultOfReply({ id: 'x', status: { state: 'working' }, artifacts: [artifact.artifact ?? null] });
  return fault?.replace('artifacts[0]', 'artifact');
}

/**
 * Converts what the SDK does not know in a v1.0 answer or event: parts, which it would empty, and the state of a pause.
 */
export function withKnownParts(reply: Json): Json {
  if (!isJsonObject(reply)) return reply;
  const inner = ['task', 'message', 'statusUpdate', 'artifactUpdate'].map((name) => member(reply, name));
  for (const object of [reply, ...inner].filter((each) => each !== undefined).filter(isJsonObject)) {
    const status = member(object, 'status');
    if (isJsonObject(status)) keepPause(status, '1.0');
    const statusMessage = isJsonObject(status) ? member(status, 'message') : undefined;
    const owners = [
      object,
      statusMessage,
      member(object, 'artifact'),
      ...listOf(object.artifacts),
      ...listOf(object.history),
    ];
    for (const owner of owners) if (isJsonObject(owner)) knowParts(owner);
  }
  return reply;
}

const contents = ['text', 'raw', 'url', 'data'];

function knowParts(owner: JsonObject): void {
  if (!Array.isArray(owner.parts)) return;
  owner.parts = owner.parts.map((part) => {
    if (!isJsonObject(part) || contents.some((name) => member(part, name) !== undefined)) return part;
    return 'data' in part ? part : (partsOf([part])[0] as JsonObject);
  });
}

function eventOf(event: JsonObject, name: 'statusUpdate' | 'artifactUpdate'): Json | undefined {
  const kinds = { statusUpdate: 'status-update', artifactUpdate: 'artifact-update' };
  return event.kind === kinds[name] ? event : member(event, name);
}

/**
 * Completes a v0.3 JSON-RPC result with the members that the SDK needs: `kind` on tasks, messages and parts (`type` in
 * older peers), and a known word for the state. Changes the value in place and returns it; contents of data parts and
 * metadata stay as they are.
 */
export function completed(result: Json): Json {
  if (!isJsonObject(result)) return result;
  const inner = result.task ?? result.message;
  const object = inner !== undefined && result.kind === undefined && isJsonObject(inner) ? inner : result;
  dropNulls(object);
  if (isJsonObject(object.status)) {
    completeStatus(object.status);
    if (object.taskId === undefined) object.kind ??= 'task';
    object.contextId ||= '';
  } else if (Array.isArray(object.parts) || object.kind === 'message' || object === result.message)
    completeMessage(object);
  for (const [index, artifact] of [object.artifact, ...listOf(object.artifacts)].entries()) {
    if (isJsonObject(artifact)) completeArtifact(artifact, index);
  }
  for (const message of listOf(object.history)) if (isJsonObject(message)) completeMessage(message);
  return object;
}

function completeStatus(status: JsonObject): void {
  keepPause(status, '0.3');
  if (typeof status.state === 'string') status.state = wordOf(stateOf(status.state));
  const { message } = status;
  if (typeof message === 'string') status.message = { parts: [{ kind: 'text', text: message }] };
  if (isJsonObject(status.message)) completeMessage(status.message);
}

function completeMessage(message: JsonObject): void {
  dropNulls(message);
  message.kind = 'message';
  message.role = typeof message.role === 'string' && /user/i.test(message.role) ? 'user' : 'agent';
  message.messageId ||= 'unnamed';
  completeParts(message);
}

function completeArtifact(artifact: JsonObject, index: number): void {
  dropNulls(artifact);
  artifact.artifactId ||= `artifact-${index + 1}`;
  completeParts(artifact);
}

/**
 * Makes an absent list an empty one; keeps a part of unknown kind, or a file part without content, as data (AN-62).
 */
function completeParts(owner: JsonObject): void {
  owner.parts = listOf(owner.parts).map((part) => {
    if (!isJsonObject(part)) return part;
    dropNulls(part);
    const kind = part.kind ?? part.type ?? ['text', 'data', 'file'].find((name) => name in part) ?? 'unknown';
    return isKnownPart({ ...part, kind })
      ? { ...part, kind }
      : { kind: 'data', ...(wrapUnknownPart(part) as JsonObject) };
  });
}

function isKnownPart({ kind, file, text }: JsonObject): boolean {
  if (kind === 'file') return isJsonObject(file) && (typeof file.bytes === 'string' || typeof file.uri === 'string');
  return kind === 'data' || (kind === 'text' && typeof text === 'string');
}

/** Removes null members: some peers write null for an absent member. The data of a part may be null. */
function dropNulls(object: JsonObject): void {
  for (const [name, value] of Object.entries(object)) if (value === null && name !== 'data') delete object[name];
}

function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
