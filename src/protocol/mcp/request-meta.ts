import { isJsonObject, type JsonObject } from '../../kernel/json.js';

/**
 * Prefixes of keys that are valid for one hop only: the peers and their capabilities are stated again on the next hop,
 * and so are the gateway's own hints.
 */
const hopByHopPrefixes = ['io.modelcontextprotocol/', 'dev.rialto/'];

/**
 * Returns the `_meta` of a request that is passed on to the server that finally serves it, such as a trace context;
 * keys that are valid for one hop only are removed. The progress token is one of them, because its number belongs to
 * one connection. Undefined when nothing is left.
 */
export function relayedMeta(params: unknown): JsonObject | undefined {
  const meta = isJsonObject(params) ? params._meta : undefined;
  if (!isJsonObject(meta)) return undefined;
  const isRelayed = ([key]: [string, unknown]): boolean =>
    key !== 'progressToken' && !hopByHopPrefixes.some((prefix) => key.startsWith(prefix));
  const relayed = Object.entries(meta).filter(isRelayed);
  return relayed.length > 0 ? Object.fromEntries(relayed) : undefined;
}
