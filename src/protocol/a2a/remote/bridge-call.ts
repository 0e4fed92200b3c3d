import { RialtoError } from '../../../kernel/errors.js';
import { storableText, type JsonObject } from '../../../kernel/json.js';
import { parseResponse, storableJson, type JsonRpcError, type JsonRpcId, type ParsedJson } from '../../jsonrpc.js';
import { readReply, type BridgeReply } from './bridge-reply.js';
import type { A2aVersion } from '../model.js';
import { messageAlone } from './skill-input.js';
import { replyFault } from './reply-fault.js';
import { areSoundIds, unsoundId } from './remote-id.js';
import { failedStates, wordOf } from '../states.js';

export { toolOutput, type BridgeReply } from './bridge-reply.js';

/** One call of one skill by the bridge. */
export interface BridgeCall {
  readonly version: A2aVersion;
  /** The JSON-RPC id, a number (RE-17). */
  readonly requestId: number;
  readonly messageId: string;
  readonly skillId: string;
  readonly args: JsonObject;
  /** True when the skill takes plain text: a lone `message` is sent as a text part (takesText). */
  readonly takesText?: boolean;
  /**
   * Correlates everything that one call causes (RE-20). v0.3 has its own fields for it; v1.0 sends it in the message
   * metadata.
   */
  readonly sessionId: string;
  readonly historyLength?: number;
  /** Sent only when given: by default v1.0 blocks, and in v0.3 the remote agent decides. */
  readonly blocking?: boolean;
  /** The tenant of the chosen interface; v1.0 clients repeat it. */
  readonly tenant?: string;
  /** Address where the remote agent can push updates of its task. */
  readonly pushUrl?: string;
}

export interface WireCall {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const jsonHeaders = { 'Content-Type': 'application/json', Accept: 'application/json' };
const maxRemoteDataLength = 4_096;

/**
 * Encodes a call in the bridge's wire form: one POST with one data part, or one text part when a skill that takes text
 * is called with a lone `message`. v0.3 has the bridge's own keys `message.skill`, `correlationId` and `taskId`
 * (RE-15…RE-20). v1.0 allows no extra keys, so the skill and the session are sent in `message.metadata`.
 */
export function encodeBridgeCall(call: BridgeCall): WireCall {
  const [method, params] = call.version === '1.0' ? newerRequest(call) : olderRequest(call);
  const body = JSON.stringify({ jsonrpc: '2.0', id: call.requestId, method, params });
  return { body, headers: call.version === '1.0' ? { ...jsonHeaders, 'A2A-Version': '1.0' } : jsonHeaders };
}

/**
 * Returns the metadata of a v1.0 message: the called skill, and the session, which RE-20 puts next to the message in
 * v0.3.
 */
export function bridgeMetadata({ skillId, sessionId }: Pick<BridgeCall, 'skillId' | 'sessionId'>) {
  return { skillId, correlationId: sessionId };
}

function newerRequest({ messageId, args, takesText, tenant, ...call }: BridgeCall): [string, object] {
  const configuration = {
    ...(call.historyLength !== undefined && { historyLength: call.historyLength }),
    ...(call.blocking !== undefined && { returnImmediately: !call.blocking }),
    ...(call.pushUrl !== undefined && { taskPushNotificationConfig: { url: call.pushUrl } }),
  };
  const parts = [skillPart({ args, takesText })];
  const message = { messageId, role: 'ROLE_USER', parts, metadata: bridgeMetadata(call) };
  return ['SendMessage', { ...(tenant && { tenant }), message, ...unlessEmpty({ configuration }) }];
}

function olderRequest({ messageId, skillId, args, takesText, sessionId, ...call }: BridgeCall): [string, object] {
  const configuration = {
    ...(call.historyLength !== undefined && { historyLength: call.historyLength }),
    ...(call.blocking !== undefined && { blocking: call.blocking }),
    ...(call.pushUrl !== undefined && { pushNotificationConfig: { url: call.pushUrl } }),
  };
  const part = skillPart({ args, takesText });
  const parts = [{ kind: 'data' in part ? 'data' : 'text', ...part }];
  const message = { kind: 'message', role: 'user', messageId, parts, skill: { skillId } };
  return ['message/send', { message, correlationId: sessionId, taskId: sessionId, ...unlessEmpty({ configuration }) }];
}

/** Builds the single part with the arguments of a skill (RE-19). */
export function skillPart({
  args,
  takesText,
}: Pick<BridgeCall, 'args' | 'takesText'>): { text: string } | { data: JsonObject } {
  const text = takesText ? messageAlone(args) : undefined;
  return text === undefined ? { data: args } : { text };
}

function unlessEmpty({ configuration }: { configuration: object }): object {
  return Object.keys(configuration).length > 0 ? { configuration } : {};
}

/**
 * Decodes the answer of a remote agent, v1.0 or v0.3, no matter which version was used in the request. `status` is the
 * HTTP status; `requestId` is the id that the answer must have. Throws only RialtoErrors: `remote_transport` for a
 * status outside 2xx (`data.status`, RE-28); `remote_invalid_response` for an answer that is not A2A or does not belong
 * to this request (RE-29); `remote_error` for a JSON-RPC error (`data.remoteCode`, `remoteMessage`, `remoteData` up to
 * 4,096 characters; RE-89); `remote_task_failed` for a task that failed, was rejected or canceled, with the remote
 * agent's text (`data.taskId`, `data.state`; RE-24). The content passes unchanged (RE-21): code that stores it must
 * make it storable.
 */
export function decodeBridgeReply(
  json: ParsedJson,
  { status, requestId }: { status: number; requestId: JsonRpcId },
): BridgeReply {
  const response = json.ok ? parseResponse(json.value) : json;
  if (status < 200 || status > 299) {
    throw new RialtoError('remote_transport', {
      message: `the remote agent answered HTTP ${status}`,
      data: { status, ...(response.ok && 'error' in response && remoteFacts(response.error)) },
    });
  }
  if (!response.ok) throw invalidAnswer(response.reason);
  const isUnreadRequest = 'error' in response && response.id === null;
  if (response.id !== requestId && !isUnreadRequest) throw invalidAnswer('its id is not the id of the request');
  if ('error' in response) throw remoteError(response.error);
  const reply = readReply(response.result);
  if (!reply) throw invalidAnswer(`the result is neither a task nor a message: ${replyFault(response.result)}`);
  if (reply.kind === 'message') return reply;
  if (!areSoundIds(reply.taskId, reply.contextId)) throw invalidAnswer(unsoundId);
  if (failedStates.has(reply.state)) throw taskFailed(storableJson(reply));
  return reply;
}

function taskFailed({ state, statusText, taskId }: Extract<BridgeReply, { kind: 'task' }>): RialtoError {
  const word = wordOf(state);
  const message = statusText === '' ? `the remote task ended as ${word}` : statusText;
  return new RialtoError('remote_task_failed', { message: storableText(message), data: { taskId, state: word } });
}

function remoteError(error: JsonRpcError): RialtoError {
  return new RialtoError('remote_error', { message: storableText(error.message), data: remoteFacts(error) });
}

function remoteFacts({ code, message, data }: JsonRpcError): Record<string, unknown> {
  const text = data === undefined ? '' : JSON.stringify(data);
  const remoteData = text.length > maxRemoteDataLength ? storableText(text, maxRemoteDataLength) : storableJson(data);
  return { remoteCode: code, remoteMessage: storableText(message), ...(remoteData !== undefined && { remoteData }) };
}

function invalidAnswer(reason: string): RialtoError {
  return new RialtoError('remote_invalid_response', {
    message: `the remote agent's answer is not A2A: ${reason}`,
    data: { reason },
  });
}
