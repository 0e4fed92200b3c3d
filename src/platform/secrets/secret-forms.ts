import { trimEnd } from '../../kernel/text.js';

/** Shorter values are found in any text, and are no secrets. */
export const leastLength = 4;
export const instead = '[redacted]';

/** A secret as somebody may say it back: plain, and as JSON, URLs, forms, HTML and Base64 write it. Pure. */
export function formsOf(secret: string): string[] {
  const json = jsonOf(secret);
  const bytes = Buffer.from(secret);
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const written = [
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
  return [secret, ...written];
}

const jsonOf = (text: string): string => JSON.stringify(text).slice(1, -1);

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const htmlOf = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char]!);

/** A text without any of these. The longest goes first: a secret may be a part of another. */
export function withoutForms(text: string, forms: readonly string[]): string {
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((clean, form) => clean.replaceAll(form, instead), text);
}
