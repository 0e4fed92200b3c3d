import { createHmac } from 'node:crypto';

/** A call to be signed. */
export interface Signed {
  /** The same for every try of one call: whoever receives it twice may drop the second. */
  readonly id: string;
  readonly body: string;
  /** Milliseconds since the epoch, of this try. */
  readonly at: number;
}

/** The headers of Standard Webhooks (its specification, version 1, "Signature scheme"). @param secret `whsec_` and a key in base64. */
export function signatureHeaders(secret: string, { id, body, at }: Signed): Record<string, string> {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const timestamp = String(Math.floor(at / 1_000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
