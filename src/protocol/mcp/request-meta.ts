import { isJsonObject, type JsonObject } from '../../kernel/json.js';

/** Of one hop: who speaks to whom and what they can do is said anew on the next one, and so are our own hints. */
const ofOneHop = ['io.modelcontextprotocol/', 'dev.rialto/'];

/**
 * What a request says of itself in `_meta` for whoever serves it at last, such as a trace context: all but what is of one hop. The token of
 * progress is, too: its numbers are those of a connection. Undefined where there is nothing.
 */
export function relayedMeta(params: unknown): JsonObject | undefined {
  const meta = isJsonObject(params) ? params._meta : undefined;
  if (!isJsonObject(meta)) return undefined;
  const isRelayed = ([key]: [string, unknown]): boolean =>
    key !== 'progressToken' && !ofOneHop.some((prefix) => key.startsWith(prefix));
  const relayed = Object.entries(meta).filter(isRelayed);
  return relayed.length > 0 ? Object.fromEntries(relayed) : undefined;
}
