import { canonicalJson } from '../../../kernel/canonical-json.js';
import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import { normaliseCard } from './card.js';
import { arrayMember } from '../members.js';

/**
 * One signature of a card: the flattened JWS without its payload (v1.0 section 8.4.2), and the members of its protected
 * header.
 */
export interface CardSignature {
  readonly protected: string;
  readonly signature: string;
  readonly alg: string;
  /** Empty when the header has no key id. */
  readonly kid: string;
  readonly jku?: string;
  /** Extensions that a verifier must understand (RFC 7515 section 4.1.11). */
  readonly isCritical: boolean;
}

/**
 * A text that a signature may cover. `isWhole` is true when the gateway reads the same card from this text as from the
 * card that was sent.
 */
export interface SignedText {
  readonly text: string;
  readonly isWhole: boolean;
}

const maxHeaderLength = 8_192;

/** Reads the signatures of a card in order; undefined stands for a malformed one. */
export function signaturesOf(card: JsonObject): (CardSignature | undefined)[] {
  return arrayMember(card, 'signatures').map((entry) => {
    if (!isJsonObject(entry) || typeof entry.protected !== 'string' || typeof entry.signature !== 'string')
      return undefined;
    const header = headerOf(entry.protected);
    if (typeof header?.alg !== 'string') return undefined;
    const { alg, kid, jku } = header;
    return {
      protected: entry.protected,
      signature: entry.signature,
      alg,
      kid: typeof kid === 'string' ? kid : '',
      ...(typeof jku === 'string' && { jku }),
      isCritical: header.crit !== undefined,
    };
  });
}

/** Returns the ids of the keys that signed a card, as the card states them: distinct and sorted. */
export function signersOf(card: JsonObject): string[] {
  return [...new Set(signaturesOf(card).map((signature) => signature?.kid ?? ''))].sort();
}

/**
 * Yields the texts that the signers of this card may have signed, the most likely first: RFC 8785 of the card as sent;
 * then without empty members, as both official SDKs write it; then also without `false` (v1.0 section 8.4.1); then
 * `others`. Each text also comes with non-ASCII characters escaped, as Python writes JSON. They are computed one at a
 * time, because the first one nearly always fits.
 */
export async function* signedTexts(
  card: JsonObject,
  url: string,
  others: () => Promise<readonly string[]>,
): AsyncGenerator<SignedText> {
  const { signatures: _signatures, ...content } = card;
  const exact = canonicalJson(content);
  const seen = new Set<string>();
  for await (const text of formsOf(content, exact, others)) {
    if (seen.has(text)) continue;
    seen.add(text);
    const isWhole = text === exact || readingOf(JSON.parse(text) as JsonObject, url) === readingOf(content, url);
    yield { text, isWhole };
    const ascii = text.replace(/[\u0080-\uffff]/g, escaped);
    if (ascii !== text) yield { text: ascii, isWhole };
  }
}

async function* formsOf(
  content: JsonObject,
  exact: string,
  others: () => Promise<readonly string[]>,
): AsyncGenerator<string> {
  yield exact;
  yield canonicalJson(withoutDefaults(content, isEmpty) ?? {});
  yield canonicalJson(withoutDefaults(content, (value) => value === false || isEmpty(value)) ?? {});
  yield* await others();
}

function headerOf(text: string): JsonObject | undefined {
  if (text.length > maxHeaderLength) return undefined;
  try {
    const header: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    return isJsonObject(header) ? header : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns everything in a card that affects the gateway, as one text. Security schemes are excluded: the gateway only
 * shows them, and the official JavaScript SDK omits them from the text that it signs.
 */
function readingOf(content: JsonObject, url: string): string | undefined {
  const read = normaliseCard(content, { url });
  return read.ok ? canonicalJson({ ...read.card, securitySchemes: undefined }) : undefined;
}

type Json = JsonObject[string];

function isEmpty(value: Json): boolean {
  return value === null || value === '';
}

function withoutDefaults(value: Json, isDefault: (value: Json) => boolean): Json | undefined {
  if (Array.isArray(value)) {
    const items = value.map((item) => withoutDefaults(item, isDefault)).filter((item) => item !== undefined);
    return items.length > 0 ? items : undefined;
  }
  if (isJsonObject(value)) {
    const members = Object.entries(value).flatMap(([name, inner]) => {
      const stripped = withoutDefaults(inner, isDefault);
      return stripped === undefined ? [] : [[name, stripped] as const];
    });
    return members.length > 0 ? Object.fromEntries(members) : undefined;
  }
  return isDefault(value) ? undefined : value;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
