import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { member, stringMember } from '../members.js';
import { stateOf, terminalStates, wordOf, type TaskState } from '../states.js';

/** What a remote agent answered; `task`, `artifacts` and `message` as it sent them, so that nothing is lost. */
export type BridgeReply =
  | {
      readonly kind: 'task';
      readonly state: TaskState;
      readonly taskId: string;
      readonly contextId?: string;
      readonly task: JsonObject;
      readonly artifacts: readonly RemoteParts[];
      /** The texts of the status message, one a line; empty when there are none. */
      readonly statusText: string;
      readonly statusMessage?: RemoteParts;
    }
  | { readonly kind: 'message'; readonly message: RemoteParts };

/** A message or an artifact as the remote sent it, with its parts already found to be parts. */
export interface RemoteParts {
  readonly raw: JsonObject;
  readonly parts: readonly JsonObject[];
}

/**
 * A JSON-RPC result to a reply: `{ task }` or `{ message }` (v1.0 section 3.2), a bare object with `kind` (v0.3 section 7.1),
 * or one told by its shape. Undefined when it is none. A state that nobody knows is kept as the named fallback.
 */
export function readReply(result: Json): BridgeReply | undefined {
  if (!isJsonObject(result)) return undefined;
  const [task, message] = [member(result, 'task'), member(result, 'message')];
  const isMessage = isJsonObject(message) && messageMembers.some((name) => member(message, name) !== undefined);
  const kind = member(result, 'kind');
  if (kind !== undefined)
    return kind === 'task' ? readTask(result) : kind === 'message' ? readMessage(result) : undefined;
  if (task !== undefined) return message === undefined ? readTask(task) : undefined;
  if (message !== undefined) return isMessage ? readMessage(message) : undefined;
  if (member(result, 'status') !== undefined) return readTask(result);
  // Nothing but its parts tells a bare message.
  return partsMember(result) === undefined ? undefined : readMessage(result);
}

/**
 * A reply as the output of a tool. One artifact of one data part: the data (RE-21); of one text part: the string (RE-22);
 * otherwise the whole artifact in the remote's own spelling (RE-23). Several artifacts: `{ artifacts }`. None: the same rules
 * for the status message, or for the message that was the answer. A task that is not over, or left nothing at all, is
 * `{ taskId, contextId?, state, message }`, with the v0.3 word of its state: the caller has to come back.
 */
export function toolOutput(reply: BridgeReply): Json {
  if (reply.kind === 'message') return contentOf(reply.message);
  if (!terminalStates.has(reply.state)) return handleOf(reply);
  const [first, ...more] = reply.artifacts;
  if (first) return more.length === 0 ? contentOf(first) : { artifacts: reply.artifacts.map(({ raw }) => raw) };
  return reply.statusMessage ? contentOf(reply.statusMessage) : handleOf(reply);
}

/** One of them at least makes an object under `message` a message; its parts may be left out. */
const messageMembers = ['messageId', 'role', 'parts', 'content'];

function contentOf({ raw, parts }: RemoteParts): Json {
  const [only, ...more] = parts;
  if (!only || more.length > 0) return raw;
  return kindOf(only) === 'data' ? (only.data ?? null) : (textOf(only) ?? raw);
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
  const said = member(status, 'message');
  const statusMessage = typeof said === 'string' ? bareText(said) : said === undefined ? undefined : readParts(said);
  if (said !== undefined && !statusMessage) return undefined;
  const contextId = stringMember(task, 'contextId');
  return {
    kind: 'task',
    state: stateOf(state),
    taskId: id,
    ...(contextId !== undefined && { contextId }),
    task,
    artifacts,
    statusText: (statusMessage?.parts ?? []).flatMap((part) => textOf(part) ?? []).join('\n'),
    ...(statusMessage && { statusMessage }),
  };
}

function readMessage(value: Json): BridgeReply | undefined {
  const message = readParts(value);
  return message && { kind: 'message', message };
}

/** A message, artifact or anything else with `parts` (`content` in the v0.3 proto). */
function readParts(value: Json): RemoteParts | undefined {
  if (!isJsonObject(value)) return undefined;
  // ProtoJSON leaves out an empty list.
  const parts = partsMember(value) ?? [];
  return Array.isArray(parts) && parts.every(isPart) ? { raw: value, parts } : undefined;
}

/** The parts of a message or an artifact; `content` in the v0.3 proto. */
export function partsMember(value: JsonObject): Json | undefined {
  return member(value, 'parts') ?? member(value, 'content');
}

/** Some agents put plain text where a message belongs. */
function bareText(text: string): RemoteParts {
  const part = { kind: 'text', text };
  return { raw: { parts: [part] }, parts: [part] };
}

/** A known kind of part has its content in the right type; an unknown kind is let through. */
export function isPart(part: Json): part is JsonObject {
  if (!isJsonObject(part)) return false;
  const kind = kindOf(part);
  if (kind === 'text') return typeof part.text === 'string';
  return kind !== 'data' || Object.hasOwn(part, 'data');
}

function textOf(part: JsonObject): string | undefined {
  return kindOf(part) === 'text' && typeof part.text === 'string' ? part.text : undefined;
}

/** `kind` (v0.3), `type` (older agents), else the content member that is there (v1.0). */
function kindOf(part: JsonObject): string {
  const kind = member(part, 'kind') ?? member(part, 'type');
  if (typeof kind === 'string') return kind;
  const content = ['text', 'data', 'raw', 'url'].filter((name) => Object.hasOwn(part, name));
  return content.find((name) => part[name] !== null) ?? content.find((name) => name === 'data') ?? 'unknown';
}
