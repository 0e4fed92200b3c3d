import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Part } from './model.js';

/**
 * Metadata key of a part with a whole part of a kind that A2A does not have as its data, such as the live activity of
 * agent-native (AN-62). v1.0 has no such kinds, so its clients get it as data; clients of v0.3 get the part unchanged.
 */
const unknownPartKey = 'urn:rialto:whole-part';

const kinds: ReadonlySet<unknown> = new Set(['text', 'file', 'data']);

/** Keeps a part of an unknown kind, with all its members, as data. A part that names no kind is data only. */
export function wrapUnknownPart(part: JsonObject | undefined): Part {
  const kept = { data: part, metadata: { [unknownPartKey]: true } };
  return unwrapUnknownPart(kept) ? kept : { data: part };
}

/** Returns the part that `wrapUnknownPart` kept; undefined for every other part. */
export function unwrapUnknownPart({ data, metadata }: Part): JsonObject | undefined {
  if (metadata?.[unknownPartKey] !== true || !isJsonObject(data)) return undefined;
  const kind = data.kind ?? data.type;
  return typeof kind === 'string' && !kinds.has(kind) ? data : undefined;
}
