import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import type { Part } from './model.js';

/** The shortest ciphertext, that of an empty text: version byte, encapsulated key (32) and tag (16). */
const minBytes = 49;
const base64url = /^[\w-]+={0,2}$/;

/**
 * True when a message is encrypted: every part is data with an `encrypted_payload` that is base64url of the version
 * byte 1, the encapsulated key and the ciphertext (RI-05). Only the form is checked, because the gateway has no key to
 * decrypt with.
 */
export function isEncrypted(parts: readonly Part[]): boolean {
  return parts.length > 0 && parts.every(isEncryptedPart);
}

/** Says which `encrypted_payload` of a message has a wrong form; undefined when none has. */
export function wrongPayload(parts: readonly Part[]): string | undefined {
  const index = parts.findIndex(
    (part) => isJsonObject(part.data) && 'encrypted_payload' in part.data && !isEncryptedPart(part),
  );
  if (index === -1) return undefined;
  return (
    `parts[${index}].data.encrypted_payload is not base64url of the byte 1, a key of 32 bytes and a ciphertext of at ` +
    'least 16, or its encryption_version is no string'
  );
}

/** Returns the size of an encrypted message in bytes, over all its parts. */
export function encryptedBytes(parts: readonly Part[]): number {
  const sizes = parts.map(({ data }) =>
    Buffer.byteLength((data as JsonObject).encrypted_payload as string, 'base64url'),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function isEncryptedPart({ data }: Part): boolean {
  if (!isJsonObject(data)) return false;
  const { encrypted_payload: payload, encryption_version: version } = data;
  if (typeof payload !== 'string' || (version !== undefined && typeof version !== 'string')) return false;
  if (!base64url.test(payload)) return false;
  return Buffer.byteLength(payload, 'base64url') >= minBytes && Buffer.from(payload.slice(0, 4), 'base64url')[0] === 1;
}
