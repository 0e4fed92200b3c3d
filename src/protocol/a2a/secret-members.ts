import type { JsonObject } from '../../kernel/json.js';
import type { Message } from './model.js';

/** Members of metadata in which older callers send credentials and identities (AN-55); compared without case, `-` and `_`. */
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

/** Metadata without credentials and identities: those travel in headers alone (v1.0 section 7). The same object when it has none. */
export function withoutSecrets(metadata: JsonObject): JsonObject {
  const isSecret = (name: string): boolean =>
    secrets.has(name.toLowerCase().replace(/[-_]/g, '')) || name.startsWith('__');
  const names = Object.keys(metadata);
  if (!names.some(isSecret)) return metadata;
  return Object.fromEntries(names.filter((name) => !isSecret(name)).map((name) => [name, metadata[name]!]));
}

/** A message as it may be stored and told. */
export function withoutSecretMetadata(message: Message): Message {
  if (!message.metadata) return message;
  const metadata = withoutSecrets(message.metadata);
  return metadata === message.metadata ? message : { ...message, metadata };
}
