import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { envelopeVersion } from './envelope.js';

/** The A2A extension of agents with published keys (docs/encryption.md). */
export const e2eeUri = 'urn:rialto:e2ee:v1';
/** The HPKE suite by its names in RFC 9180: KEM, KDF, AEAD. */
export const suite = 'DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM';

/** How an agent asks to be written to. */
export interface EncryptionOffer {
  /** Address of its key set. It is also its name as recipient. */
  readonly keys: string;
  /** True when it refuses cleartext. */
  readonly required: boolean;
}

/** Returns the offer on a card of either version; undefined when it has none that this version understands. */
export function encryptionOffer(card: JsonObject = {}): EncryptionOffer | undefined {
  const extensions = isJsonObject(card.capabilities) ? card.capabilities.extensions : undefined;
  const found = Array.isArray(extensions)
    ? extensions.filter(isJsonObject).find(({ uri }) => uri === e2eeUri)
    : undefined;
  const params = found?.params;
  if (!found || !isJsonObject(params) || typeof params.keys !== 'string') return undefined;
  if (params.suite !== suite || params.version !== envelopeVersion) return undefined;
  return { keys: params.keys, required: found.required === true };
}
