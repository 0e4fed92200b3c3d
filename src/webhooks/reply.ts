import { storableText } from '../kernel/json.js';
import { redact } from '../platform/secrets/redact.js';

/** What is kept of a reply. */
const maxReplyLength = 4_096;
/** Shorter values are found in any text, and are no secrets. */
const leastLength = 4;
const instead = '[redacted]';

/** What was sent with a post and is not to be kept when it is said back. */
export interface Sent {
  readonly url: string;
  /** Tokens and credentials. */
  readonly secrets: readonly (string | undefined)[];
}

/**
 * The beginning of a reply as it is kept: without what was sent, plain or as JSON, forms, URLs and Base64 write it, and without what looks
 * like a credential. Hand over more than is kept: what is taken out is taken out before the rest is cut.
 * @param isCut the reply went on, so that its last characters may be the beginning of a secret.
 */
export function keptReply(reply: string, { url, secrets }: Sent, isCut: boolean): string {
  if (reply === '') return '';
  const plain = secrets.filter((secret): secret is string => secret !== undefined && secret !== '');
  const longer = [...plain, ...queryValues(url)].flatMap(formsOf).filter((form) => form.length >= leastLength);
  // The longest first: a secret may be a part of another.
  const forms = [...new Set([...plain, ...longer])].sort((a, b) => b.length - a.length);
  const clean = forms.reduce((text, form) => text.replaceAll(form, instead), reply);
  const safe = String(redact(isCut ? withoutBegun(clean, forms) : clean));
  return storableText(safe.slice(0, maxReplyLength), maxReplyLength);
}

/** As they stand in the address and as they are meant; a part without a name is all value. */
function queryValues(url: string): string[] {
  if (!url.includes('?')) return [];
  const parts = new URL(url).search.slice(1).split('&');
  return parts.flatMap((part) => {
    const value = part.slice(part.indexOf('=') + 1);
    return [value, ...new URLSearchParams(`v=${value}`).getAll('v')];
  });
}

function formsOf(secret: string): string[] {
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
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
  ];
  return [secret, ...written];
}

const jsonOf = (text: string): string => JSON.stringify(text).slice(1, -1);

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const htmlOf = (text: string): string => text.replace(/[&<>"]/g, (char) => entities[char]!);

/** Without a last part that some form begins with. */
function withoutBegun(text: string, forms: readonly string[]): string {
  const whole = text.replace(/\uFFFD+$/, '');
  const begun = (form: string): number => {
    for (let length = Math.min(form.length, whole.length); length > 0; length--)
      if (whole.endsWith(form.slice(0, length))) return length;
    return 0;
  };
  return whole.slice(0, whole.length - Math.max(0, ...forms.map(begun)));
}
