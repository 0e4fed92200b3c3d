import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/client';
import { isJsonObject } from '../../kernel/json.js';

/** Key under which a raw result passes through the SDK. */
const rawKey = 'dev.rialto/raw';
/** Members that each result of the 2026-07-28 revision must have. */
const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } as const;
/** Further members that the SDK requires in the results of the methods that the gateway calls. */
const empty = {
  ...complete,
  content: [],
  contents: [],
  messages: [],
  completion: { values: [] },
  tools: [],
  resources: [],
  resourceTemplates: [],
  prompts: [],
};
/** Methods with results that the SDK reads itself. */
const sdkMethods: ReadonlySet<string> = new Set(['server/discover', 'subscriptions/listen']);

export function isModernVersion(version: string | undefined): boolean {
  return version !== undefined && version >= '2026';
}

/**
 * Protects results from the schemas of the SDK. For the 2026-07-28 revision, the SDK validates each result and refuses
 * a whole list for one item, or for a caching hint that the gateway does not use. So a raw result passes through the
 * SDK inside an empty valid one, and `rawOf` takes it out. Must be called before keepOrder, which then processes
 * incoming messages first.
 */
export function keepRaw(transport: Transport): void {
  const pending = new Set<RequestId>();
  const send = transport.send.bind(transport);
  const deliver = transport.onmessage;
  transport.send = (message, options) => {
    if ('method' in message) {
      if ('id' in message && !sdkMethods.has(message.method)) pending.add(message.id);
      if (message.method === 'notifications/cancelled') pending.delete(message.params?.requestId as RequestId);
    }
    return send(message, options);
  };
  transport.onmessage = (message, extra) => {
    const isPending = !('method' in message) && message.id !== undefined && pending.delete(message.id);
    deliver?.(isPending ? wrapped(message) : message, extra);
  };
}

/**
 * Wraps a complete result. Input requests and unknown result types stay unchanged; a result without a type is a
 * complete one.
 */
function wrapped(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message)) return message;
  const { resultType = 'complete' } = message.result;
  if (resultType !== 'complete') return message;
  return { ...message, result: { ...empty, [rawKey]: message.result } };
}

/** Returns a result as its server sent it. */
export function rawOf(answer: unknown): unknown {
  return isJsonObject(answer) && isJsonObject(answer[rawKey]) ? answer[rawKey] : answer;
}

/**
 * Adds the members that the 2026-07-28 revision requires to the answer to `server/discover`, where the server omitted
 * them.
 */
export function withHints(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message) || !isJsonObject(message.result) || !Array.isArray(message.result.supportedVersions))
    return message;
  const { resultType = complete.resultType, ttlMs, cacheScope } = message.result;
  const hints = {
    resultType,
    ttlMs: Number.isSafeInteger(ttlMs) && (ttlMs as number) >= 0 ? ttlMs : complete.ttlMs,
    cacheScope: cacheScope === 'public' || cacheScope === 'private' ? cacheScope : complete.cacheScope,
  };
  return { ...message, result: { ...message.result, ...hints } };
}
