import { storableText } from '../../kernel/json.js';
import { trimEnd } from '../../kernel/text.js';
import { redact } from '../../platform/secrets/redact.js';
import { formsOf, leastLength, withoutForms } from '../../platform/secrets/secret-forms.js';

/** Most characters of a stored reply. */
const maxReplyLength = 4_096;

/** Values that were sent with a post, and must not be stored when the receiver repeats them. */
export interface Sent {
  readonly url: string;
  /** Tokens and credentials. */
  readonly secrets: readonly (string | undefined)[];
}

/**
 * The part of a reply that is stored: its beginning, without the secrets that were sent, in plain text or as JSON,
 * forms, URLs and Base64 write them, and without text that looks like a credential. Pass more text than is stored,
 * because secrets are removed before the text is cut.
 * @param isCut the reply was longer, so that its last characters may be the beginning of a secret.
 */
export function keptReply(reply: string, { url, secrets }: Sent, isCut: boolean): string {
  if (reply === '') return '';
  const plain = secrets.filter((secret): secret is string => secret !== undefined && secret !== '');
  const longer = [...plain, ...queryValues(url)].flatMap(formsOf).filter((form) => form.length >= leastLength);
  const forms = [...new Set([...plain, ...longer])];
  const clean = withoutForms(reply, forms);
  const safe = String(redact(isCut ? withoutPartialSecret(clean, forms) : clean));
  return storableText(safe.slice(0, maxReplyLength), maxReplyLength);
}

/** Values of the query, as written and decoded; a part without a name is a value. */
function queryValues(url: string): string[] {
  if (!url.includes('?')) return [];
  const parts = new URL(url).search.slice(1).split('&');
  return parts.flatMap((part) => {
    const value = part.slice(part.indexOf('=') + 1);
    return [value, ...new URLSearchParams(`v=${value}`).getAll('v')];
  });
}

/** Removes the end of the text when a secret may begin there. */
function withoutPartialSecret(text: string, forms: readonly string[]): string {
  const whole = trimEnd(text, '\uFFFD');
  const overlapWith = (form: string): number => {
    for (let length = Math.min(form.length, whole.length); length > 0; length--)
      if (whole.endsWith(form.slice(0, length))) return length;
    return 0;
  };
  return whole.slice(0, whole.length - Math.max(0, ...forms.map(overlapWith)));
}
