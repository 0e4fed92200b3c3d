import { trimEnd } from '../../kernel/text.js';

/** Shorter values occur in any text, and are not treated as secrets. */
export const leastLength = 4;
export const instead = '[redacted]';

/**
 * Returns the spellings of a secret that an echo may contain: plain, and encoded for JSON, URLs, forms, HTML and
 * Base64.
 */
export function formsOf(secret: string): string[] {
  const json = jsonOf(secret);
  const bytes = Buffer.from(secret);
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const encoded = [
    json,
    jsonOf(json),
    json.replaceAll('/', '\\/'),
    json.replace(/[<>&'+]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`),
    json.replaceAll('\\"', '\\u0022'),
    inUrl,
    inUrl.toLowerCase(),
    new URLSearchParams({ v: secret }).toString().slice(2),
    htmlOf(secret),
    trimEnd(bytes.toString('base64'), '='),
    bytes.toString('base64url'),
  ];
  return [secret, ...encoded];
}

const jsonOf = (text: string): string => JSON.stringify(text).slice(1, -1);

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const htmlOf = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char]!);

/** Replaces these forms in a text. The longest comes first, because one secret may be part of another. */
export function withoutForms(text: string, forms: readonly string[]): string {
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((clean, form) => clean.replaceAll(form, instead), text);
}
