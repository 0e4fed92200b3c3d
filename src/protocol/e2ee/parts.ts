import { isJsonObject } from '../../kernel/json.js';
import type { Part } from '../a2a/model.js';
import { parseJson } from '../jsonrpc.js';
import type { Decrypted } from './decrypt.js';
import { E2eeError } from './errors.js';

/** Media type of a payload that holds the parts of an A2A message: `{"parts": […]}` in the v1.0 shape. */
export const partsType = 'application/a2a-parts+json';

export function partsPayload(parts: readonly Part[]): string {
  return JSON.stringify({ parts });
}

/** Returns the parts of a decrypted message; another text becomes one text part. Throws `malformed`. */
export function partsOfPayload({ payload, contentType }: Pick<Decrypted, 'payload' | 'contentType'>): Part[] {
  if (contentType.startsWith('text/')) return [{ text: payload.toString('utf8'), mediaType: contentType }];
  if (contentType !== partsType) return [{ raw: payload.toString('base64'), mediaType: contentType }];
  const parsed = parseJson(payload.toString('utf8'));
  if (!parsed.ok || !isJsonObject(parsed.value) || !Array.isArray(parsed.value.parts))
    throw new E2eeError('malformed', 'the decrypted content is not a list of parts');
  return parsed.value.parts as unknown as Part[];
}
