import { timingSafeEqual } from 'node:crypto';
import { parseExact } from '../protocol/exact-integers.js';
import { systemClock } from '../kernel/clock.js';
import { signatureOf } from '../protocol/webhook-signature.js';

/** The package export `rialto/webhooks`: verification of webhooks for their receivers. */

/** Thrown for a delivery that is not authentic. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

export interface VerifyOptions {
  /** Largest difference of the clocks, and so how long a delivery can be replayed; default 300. */
  readonly toleranceSeconds?: number;
  /** Milliseconds since the epoch. */
  readonly now?: number;
}

type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Verifies the signature and the age of a delivery, and returns its body as JSON. Pass the bytes as received: a body
 * that was parsed and serialized again does not verify. Deliveries of one event share their `webhook-id`, so ignore an
 * id that you have seen.
 * Throws WebhookVerificationError, and TypeError for an invalid secret, because anyone can sign with an empty one.
 * @param secret `whsec_…` as `POST /api/webhooks/secrets` showed it; several during a change of secrets.
 */
export function verifyWebhook(
  secret: string | readonly string[],
  headers: Headers | HeaderValues,
  body: string | Uint8Array,
  { toleranceSeconds = 300, now = systemClock.now() }: VerifyOptions = {},
): unknown {
  const secrets = [secret].flat();
  secrets.forEach(requireSecret);
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    headerOf(headers, name),
  );
  if (!id || !timestamp || !signatures)
    throw new WebhookVerificationError('a header is missing: webhook-id, webhook-timestamp or webhook-signature');
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1_000 - Number(timestamp)) > toleranceSeconds)
    throw new WebhookVerificationError('the timestamp of the webhook is too old, or in the future');
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new WebhookVerificationError('the raw body is needed, as text or bytes; a parsed body cannot be verified');
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
  const content = `${id}.${timestamp}.${text}`;
  const expected = secrets.map((one) => signatureOf(one, content));
  const given = signatures.split(' ');
  if (!expected.some((signature) => given.some((one) => isSame(signature, one))))
    throw new WebhookVerificationError('no signature is right');
  return parseExact(text);
}

/** Shortest accepted key. The gateway's keys have twice as many bytes; Standard Webhooks requires at least 24. */
const minKeyBytes = 16;

function requireSecret(secret: unknown): void {
  const key = typeof secret === 'string' ? secret.replace(/^whsec_/, '') : '';
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(key) && Buffer.from(key, 'base64').length >= minKeyBytes) return;
  throw new TypeError(
    'the webhook secret is missing or damaged: ' +
      'pass the text that was shown when it was made, whsec_ and a key in base64',
  );
}

function headerOf(headers: Headers | HeaderValues, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name] ?? Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof value === 'string' ? value : value?.[0];
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
