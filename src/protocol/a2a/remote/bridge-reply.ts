import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { member, stringMember } from '../members.js';
import { stateOf, terminalStates, wordOf, type TaskState } from '../states.js';

/** The answer of a remote agent; `task`, `artifacts` and `message` are as it sent them, so that nothing is lost. */
export type BridgeReply =
  | {
      readonly kind: 'task';
      readonly state: TaskState;
      readonly taskId: string;
      readonly contextId?: string;
      readonly task: JsonObject;
      readonly artifacts: readonly RemoteParts[];
      /** The texts of the status message, one for each line; empty when there are none. */
      readonly statusText: string;
      readonly statusMessage?: RemoteParts;
    }
  | { readonly kind: 'message'; readonly message: RemoteParts };

/** A message or an artifact as the remote agent sent it; its parts are already validated. */
export interface RemoteParts {
  readonly raw: JsonObject;
  readonly parts: readonly JsonObject[];
}

/**
 * Reads a reply from a JSON-RPC result: `{ task }` or `{ message }` (v1.0 section 3.2), a bare object with `kind` (v0.3
 * section 7.1), or a bare object that is recognised by its members. Undefined when it is neither. An unknown state
 * becomes the named fallback.
 */
export function readReply(result: Json): BridgeReply | undefined {
  if (!isJsonObject(result)) return undefined;
  const [task, message] = [member(result, 'task'), member(result, 'message')];
  const isMessage = isJsonObject(message) && messageMembers.some((name) => member(message, name) !== undefined);
  const kind = member(result, 'kind');
  if (kind !== undefined)
    return kind === 'task' ? readTask(result) : kind === 'message' ? readReplyMessage(result) : undefined;
  if (task !== undefined) return message === undefined ? readTask(task) : undefined;
  if (message !== undefined) return isMessage ? readReplyMessage(message) : undefined;
  if (member(result, 'status') !== undefined) return readTask(result);
  // A bare message can be recognised only by its parts.
  return partsMember(result) === undefined ? undefined : readReplyMessage(result);
}

/**
 * Converts a reply to the output of a tool. One artifact with one data part: the data (RE-21); with one text part: the
 * string (RE-22); otherwise the whole artifact as the remote agent wrote it (RE-23). Several artifacts: `{ artifacts
 * }`. No artifacts: the same rules for the status message, or for the message that is the answer. A task that has not
 * ended, or ended with no output, is `{ taskId, contextId?, state, message }` with the v0.3 word for its state; the
 * caller must poll it.
 */
export function toolOutput(reply: BridgeReply): Json {
  if (reply.kind === 'message') return replyContent(reply.message);
  if (!terminalStates.has(reply.state)) return handleOf(reply);
  const [first, ...more] = reply.artifacts;
  if (first) return more.length === 0 ? replyContent(first) : { artifacts: reply.artifacts.map(({ raw }) => raw) };
  return reply.statusMessage ? replyContent(reply.statusMessage) : handleOf(reply);
}

/** An object under `message` is a message when it has at least one of these members; the parts may be absent. */
const messageMembers = ['messageId', 'role', 'parts', 'content'];

function replyContent({ raw, parts }: RemoteParts): Json {
  const [only, ...more] = parts;
  if (!only || more.length > 0) return raw;
  return kindOf(only) === 'data' ? (only.data ?? null) : (partText(only) ?? raw);
}

function handleOf({ taskId, contextId, state, statusText }: Extract<BridgeReply, { kind: 'task' }>): JsonObject {
  return { taskId, ...(contextId !== undefined && { contextId }), state: wordOf(state), message: statusText };
}

function readTask(task: Json): BridgeReply | undefined {
  if (!isJsonObject(task)) return undefined;
  const [id, status] = [stringMember(task, 'id'), member(task, 'status')];
  if (!id || !isJsonObject(status)) return undefined;
  const state = stringMember(status, 'state');
  const list = member(task, 'artifacts') ?? [];
  if (state === undefined || !Array.isArray(list)) return undefined;
  const artifacts = list.map(readParts);
  if (!artifacts.every((artifact) => artifact !== undefined)) return undefined;
  const message = member(status, 'message');
  const statusMessage =
    typeof message === 'string' ? bareText(message) : message === undefined ? undefined : readParts(message);
  if (message !== undefined && !statusMessage) return undefined;
  const contextId = stringMember(task, 'contextId');
  return {
    kind: 'task',
    state: stateOf(state),
    taskId: id,
    ...(contextId !== undefined && { contextId }),
    task,
    artifacts,
    statusText: (statusMessage?.parts ?? []).flatMap((part) => partText(part) ?? []).join('\n'),
    ...(statusMessage && { statusMessage }),
  };
}

function readReplyMessage(value: Json): BridgeReply | undefined {
  const message = readParts(value);
  return message && { kind: 'message', message };
}

/** Reads a message, an artifact or another object with `parts` (`content` in the v0.3 proto). */
function readParts(value: Json): RemoteParts | undefined {
  if (!isJsonObject(value)) return undefined;
  // Absent parts are an empty list: ProtoJSON omits empty lists.
  const parts = partsMember(value) ?? [];
  return Array.isArray(parts) && parts.every(isPart) ? { raw: value, parts } : undefined;
}

/** Returns the parts of a message or an artifact; they are `content` in the v0.3 proto. */
export function partsMember(value: JsonObject): Json | undefined {
  return member(value, 'parts') ?? member(value, 'content');
}

/** Wraps a plain text that some agents send in place of a message. */
function bareText(text: string): RemoteParts {
  const part = { kind: 'text', text };
  return { raw: { parts: [part] }, parts: [part] };
}

/** True when a part of a known kind has content of the right type; parts of unknown kinds are accepted. */
export function isPart(part: Json): part is JsonObject {
  if (!isJsonObject(part)) return false;
  const kind = kindOf(part);
  if (kind === 'text') return typeof part.text === 'string';
  return kind !== 'data' || Object.hasOwn(part, 'data');
}

function partText(part: JsonObject): string | undefined {
  return kindOf(part) === 'text' && typeof part.text === 'string' ? part.text : undefined;
}

/** Returns the kind of a part: `kind` (v0.3), `type` (older agents), or the name of its content member (v1.0). */
function kindOf(part: JsonObject): string {
  const kind = member(part, 'kind') ?? member(part, 'type');
  if (typeof kind === 'string') return kind;
  const content = ['text', 'data', 'raw', 'url'].filter((name) => Object.hasOwn(part, name));
  return content.find((name) => part[name] !== null) ?? content.find((name) => name === 'data') ?? 'unknown';
}
