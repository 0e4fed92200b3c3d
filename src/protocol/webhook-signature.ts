import { createHmac } from 'node:crypto';

/** A call to be signed. */
export interface Signed {
  /** The same for every try of one call: whoever receives it twice may drop the second. */
  readonly id: string;
  readonly body: string;
  /** Milliseconds since the epoch, of this try. */
  readonly at: number;
}

/**
 * The headers of Standard Webhooks (its specification, version 1, "Signature scheme"); with several secrets one signature each, so that
 * receivers may change theirs in their own time. Without any there is nothing to verify by.
 * @param secrets `whsec_` and a key in base64.
 */
export function signatureHeaders(secrets: readonly string[], { id, body, at }: Signed): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  const signatures = secrets.map((secret) => signatureOf(secret, `${id}.${timestamp}.${body}`));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  };
}

/** The scheme by which a configuration asks for the header of the same name (RI-43). */
export const rineScheme = 'X-Rine-Signature';

/**
 * That header: `sha256=` and the HMAC-SHA-256 of the body in hex, under the credentials of the configuration, else under the key of a
 * `whsec_` secret. None without a secret.
 */
export function rineHeader(secret: string | undefined, body: string): Record<string, string> {
  if (secret === undefined) return {};
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret;
  return { [rineScheme]: `sha256=${createHmac('sha256', key).update(body).digest('hex')}` };
}

/** `v1,` and the HMAC-SHA-256 of `<id>.<timestamp>.<body>` in base64. */
export function signatureOf(secret: string, content: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
