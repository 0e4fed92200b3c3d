import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/client';
import { isJsonObject } from '../../kernel/json.js';

/** Under which a result travels through the SDK. */
const rawKey = 'dev.rialto/raw';
/** What any result of the 2026-07-28 revision must have. */
const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } as const;
/** What the results of the methods that we ask for must have beside. */
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
/** The SDK reads these results itself. */
const ofTheSdk: ReadonlySet<string> = new Set(['server/discover', 'subscriptions/listen']);

export function isModernVersion(version: string | undefined): boolean {
  return version !== undefined && version >= '2026';
}

/**
 * The SDK holds the results of the 2026-07-28 revision to the schema of their method, and refuses a whole list for one item, or for a
 * caching hint that nobody here reads. So a result travels through it inside of an empty one; `rawOf` takes it out. Before keepOrder,
 * which it comes after on the way in.
 */
export function keepRaw(line: Transport): void {
  const asked = new Set<RequestId>();
  const send = line.send.bind(line);
  const deliver = line.onmessage;
  line.send = (message, options) => {
    if ('method' in message) {
      if ('id' in message && !ofTheSdk.has(message.method)) asked.add(message.id);
      if (message.method === 'notifications/cancelled') asked.delete(message.params?.requestId as RequestId);
    }
    return send(message, options);
  };
  line.onmessage = (message, extra) => {
    const isOurs = !('method' in message) && message.id !== undefined && asked.delete(message.id);
    deliver?.(isOurs ? wrapped(message) : message, extra);
  };
}

/** Questions and unknown kinds of results stay what they are; a result that names no kind is a complete one. */
function wrapped(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message)) return message;
  const { resultType = 'complete' } = message.result;
  if (resultType !== 'complete') return message;
  return { ...message, result: { ...empty, [rawKey]: message.result } };
}

/** A result as its server said it. */
export function rawOf(answer: unknown): unknown {
  return isJsonObject(answer) && isJsonObject(answer[rawKey]) ? answer[rawKey] : answer;
}

/** The answer to the first question with what the 2026-07-28 revision asks of it, where the server left that out. */
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
