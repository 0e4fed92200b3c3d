import { timingSafeEqual } from 'node:crypto';
import { parseExact } from '../protocol/exact-integers.js';
import { systemClock } from '../kernel/clock.js';
import { signatureOf } from '../protocol/webhook-signature.js';

/** The package export `rialto/webhooks`: what a receiver of our webhooks needs. */

/** Why a delivery is not to be believed. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

export interface VerifyOptions {
  /** How far the clocks may be apart, and so how long a delivery can be replayed; 300. */
  readonly toleranceSeconds?: number;
  /** Milliseconds since the epoch. */
  readonly now?: number;
}

type HeaderValues = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The body of a delivery as JSON, once its signature and age are right. Hand over the bytes as they came: a body that was parsed and written
 * again does not verify. Deliveries of one event share their `webhook-id`, so drop an id that was seen.
 * Throws WebhookVerificationError, and TypeError for a secret that is none: anybody can sign with an empty one.
 * @param secret `whsec_…` as `POST /api/webhooks/secrets` showed it; several while you change it.
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
  if (!id || !timestamp || !signatures) throw new WebhookVerificationError('the headers of a webhook are missing');
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1_000 - Number(timestamp)) > toleranceSeconds)
    throw new WebhookVerificationError('the webhook is too old, or from the future');
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    throw new WebhookVerificationError('the raw body is needed, as text or bytes; a parsed one cannot be verified');
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
  const content = `${id}.${timestamp}.${text}`;
  const expected = secrets.map((one) => signatureOf(one, content));
  const given = signatures.split(' ');
  if (!expected.some((signature) => given.some((one) => isSame(signature, one))))
    throw new WebhookVerificationError('no signature is right');
  return parseExact(text);
}

/** Half of what ours have; Standard Webhooks wants 24 bytes and more. */
const leastKeyBytes = 16;

function requireSecret(secret: unknown): void {
  const key = typeof secret === 'string' ? secret.replace(/^whsec_/, '') : '';
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(key) && Buffer.from(key, 'base64').length >= leastKeyBytes) return;
  throw new TypeError(
    'the secret of webhooks is missing or damaged: it is whsec_ and a key in base64, as it was shown once',
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
