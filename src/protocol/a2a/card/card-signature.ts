import { canonicalJson } from '../../../kernel/canonical-json.js';
import { isJsonObject, type JsonObject } from '../../../kernel/json.js';
import { normaliseCard } from './card.js';
import { arrayMember } from '../members.js';

/** One signature of a card: the flattened JWS without its payload (v1.0 section 8.4.2), and what its protected header says. */
export interface CardSignature {
  readonly protected: string;
  readonly signature: string;
  readonly alg: string;
  /** Empty when the header names no key. */
  readonly kid: string;
  readonly jku?: string;
  /** Extensions that a verifier must understand (RFC 7515 section 4.1.11). */
  readonly isCritical: boolean;
}

/** What a signature may be over; `isWhole` when the gateway reads the same card out of it as out of what was sent. */
export interface SignedText {
  readonly text: string;
  readonly isWhole: boolean;
}

const maxHeaderLength = 8_192;

/** The signatures of a card in their order; undefined stands for one that is malformed. */
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

/** The ids of the keys that a card says it is signed with, each once, in one order. */
export function signersOf(card: JsonObject): string[] {
  return [...new Set(signaturesOf(card).map((signature) => signature?.kid ?? ''))].sort();
}

/**
 * The texts that signers of this card may have signed, the exact one first: RFC 8785 over what was sent; then without members that
 * are empty, as both official SDKs write it; then without `false` too (v1.0 section 8.4.1); then `others`. Each also with
 * non-ASCII characters escaped, as Python writes JSON. Computed one at a time: the first is nearly always the right one.
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
 * All of a card that this gateway acts on, in one text. Security schemes are only shown, and the official JavaScript SDK loses
 * them from what it signs.
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
      const kept = withoutDefaults(inner, isDefault);
      return kept === undefined ? [] : [[name, kept] as const];
    });
    return members.length > 0 ? Object.fromEntries(members) : undefined;
  }
  return isDefault(value) ? undefined : value;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
