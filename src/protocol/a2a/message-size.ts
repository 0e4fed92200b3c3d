import { canonicalJson } from '../../kernel/canonical-json.js';
import type { JsonObject } from '../../kernel/json.js';
import { isEncrypted } from './encrypted-parts.js';
import type { Message } from './model.js';

/** Most bytes of the parts and of the metadata of a message, as JSON; absent: no limit but that of the request. */
export interface SizeLimits {
  readonly payloadBytes?: number;
  readonly metadataBytes?: number;
}

/** Limits of an encrypted message in every deployment: the format has them. */
const ofEncrypted = { payloadBytes: 131_072, metadataBytes: 4_096 };

export interface TooLarge {
  readonly field: 'encrypted_payload' | 'parts' | 'metadata';
  readonly bytes: number;
  readonly maxBytes: number;
}

/** Returns the member of a message that is larger than its limit (RI-47); undefined when each one is within. */
export function oversized(
  { parts, metadata: own }: Pick<Message, 'parts' | 'metadata'>,
  metadata: JsonObject | undefined,
  limits: SizeLimits,
): TooLarge | undefined {
  const isSealed = isEncrypted(parts);
  const metadataBytes = isSealed ? least(limits.metadataBytes, ofEncrypted.metadataBytes) : limits.metadataBytes;
  for (const each of [own, metadata, ofParts(parts), ...(isSealed ? parts.map(sealedMetadata) : [])]) {
    if (each === undefined || metadataBytes === undefined) continue;
    const excess = over('metadata', bytesOf(each), metadataBytes);
    if (excess) return excess;
  }
  const payload = isSealed ? over('encrypted_payload', sealedBytes(parts), ofEncrypted.payloadBytes) : undefined;
  if (payload) return payload;
  return limits.payloadBytes === undefined ? undefined : over('parts', bytesOf(parts), limits.payloadBytes);
}

function over(field: TooLarge['field'], bytes: number, maxBytes: number): TooLarge | undefined {
  return bytes > maxBytes ? { field, bytes, maxBytes } : undefined;
}

function least(one: number | undefined, other: number): number {
  return Math.min(one ?? other, other);
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(canonicalJson(value));
}

/** The size of all encrypted payloads together: base64url has one byte for each character. */
function sealedBytes(parts: Message['parts']): number {
  return parts.reduce((sum, { data }) => sum + ((data as JsonObject).encrypted_payload as string).length, 0);
}

/** The metadata of all parts together; undefined when there are none. */
function ofParts(parts: Message['parts']): unknown {
  const all = parts.flatMap(({ metadata }) => metadata ?? []);
  return all.length > 0 ? all : undefined;
}

function sealedMetadata({ data }: Message['parts'][number]): unknown {
  return (data as JsonObject).metadata;
}
