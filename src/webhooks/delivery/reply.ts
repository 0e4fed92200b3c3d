import { storableText } from '../../kernel/json.js';
import { trimEnd } from '../../kernel/text.js';
import { redact } from '../../platform/secrets/redact.js';
import { formsOf, leastLength, withoutForms } from '../../platform/secrets/secret-forms.js';

/** What is kept of a reply. */
const maxReplyLength = 4_096;

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
  const forms = [...new Set([...plain, ...longer])];
  const clean = withoutForms(reply, forms);
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

/** Without a last part that some form begins with. */
function withoutBegun(text: string, forms: readonly string[]): string {
  const whole = trimEnd(text, '\uFFFD');
  const begun = (form: string): number => {
    for (let length = Math.min(form.length, whole.length); length > 0; length--)
      if (whole.endsWith(form.slice(0, length))) return length;
    return 0;
  };
  return whole.slice(0, whole.length - Math.max(0, ...forms.map(begun)));
}
