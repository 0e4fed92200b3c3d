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

/**
 * Removes credentials and identities from metadata, at any depth: they may be sent only in headers (v1.0 section 7).
 * Returns the same object when it has none.
 */
export function withoutSecrets(metadata: JsonObject): JsonObject {
  return cleaned(metadata) as JsonObject;
}

function cleaned(value: Json): Json {
  if (Array.isArray(value)) {
    const items = value.map(cleaned);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value);
  const allowed = members.filter(([name]) => !isSecret(name)).map(([name, inner]) => [name, cleaned(inner)] as const);
  const isSame = allowed.length === members.length && allowed.every(([name, inner]) => inner === value[name]);
  return isSame ? value : Object.fromEntries(allowed);
}

function isSecret(name: string): boolean {
  return secrets.has(name.toLowerCase().replace(/[-_]/g, '')) || name.startsWith('__');
}

/** Returns a message without the secrets in its metadata, so that it can be stored and sent. */
export function withoutSecretMetadata(message: Message): Message {
  if (!message.metadata) return message;
  const metadata = withoutSecrets(message.metadata);
  return metadata === message.metadata ? message : { ...message, metadata };
}
