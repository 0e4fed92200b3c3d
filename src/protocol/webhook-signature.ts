import { createHmac, createSecretKey } from 'node:crypto';

/** A webhook call to sign. */
export interface Signed {
  /** The same for every attempt of one call, so that the receiver can drop a duplicate. */
  readonly id: string;
  readonly body: string;
  /** The time of this attempt, in milliseconds since the epoch. */
  readonly at: number;
}

/**
 * Returns the headers of Standard Webhooks (its specification, version 1, "Signature scheme"). With several secrets
 * there is one signature for each, so that receivers can rotate theirs at their own pace. Without secrets there is no
 * signature.
 *
 * @param secrets each is `whsec_` and a key in base64.
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

/** The authentication scheme with which a configuration asks for the header of the same name (RI-43). */
export const rineScheme = 'X-Rine-Signature';

/**
 * Returns the header `X-Rine-Signature`: `sha256=` and the HMAC-SHA-256 of the body in hex. The key is the credentials
 * of the configuration, or the key of a `whsec_` secret. No header without a secret.
 */
export function rineHeader(secret: string | undefined, body: string): Record<string, string> {
  if (secret === undefined) return {};
  const key = secret.startsWith('whsec_') ? createSecretKey(secret.slice(6), 'base64') : secret;
  return { [rineScheme]: `sha256=${createHmac('sha256', key).update(body).digest('hex')}` };
}

/** Returns `v1,` and the HMAC-SHA-256 of `<id>.<timestamp>.<body>` in base64. */
export function signatureOf(secret: string, content: string): string {
  // Node 24 takes four times as long with the bytes of a key.
  const key = createSecretKey(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
