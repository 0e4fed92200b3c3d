import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { Message } from './model.js';

/**
 * Metadata members in which older callers send credentials and identities (AN-55); compared without case, `-` and `_`.
 */
const secrets: ReadonlySet<string> = new Set([
  'googletoken',
  'useremail',
  'orgdomain',
  'accesstoken',
  'refreshtoken',
  'apikey',
  'authorization',
  'bearer',
  'internalprocessor',
  'processordata',
]);

const separators = /[-_]/;

/**
 * Removes credentials and identities from metadata, at any depth: they may be sent only in headers (v1.0 section 7).
 * Returns the same object when it has none.
 */
export function withoutSecrets(metadata: JsonObject): JsonObject {
  return holdsSecret(metadata) ? (cleaned(metadata) as JsonObject) : metadata;
}

function holdsSecret(value: Json): boolean {
  if (Array.isArray(value)) return value.some(holdsSecret);
  return isJsonObject(value) && Object.keys(value).some((name) => isSecret(name) || holdsSecret(value[name]!));
}

function cleaned(value: Json): Json {
  if (Array.isArray(value)) return value.map(cleaned);
  if (!isJsonObject(value)) return value;
  const allowed = Object.entries(value).filter(([name]) => !isSecret(name));
  return Object.fromEntries(allowed.map(([name, inner]) => [name, cleaned(inner)]));
}

function isSecret(name: string): boolean {
  if (name.startsWith('__')) return true;
  const word = name.toLowerCase();
  return secrets.has(separators.test(word) ? word.replace(/[-_]/g, '') : word);
}

/** Returns a message without the secrets in its metadata, so that it can be stored and sent. */
export function withoutSecretMetadata(message: Message): Message {
  if (!message.metadata) return message;
  const metadata = withoutSecrets(message.metadata);
  return metadata === message.metadata ? message : { ...message, metadata };
}
