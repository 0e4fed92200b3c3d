import { createHmac, timingSafeEqual } from 'node:crypto';

const lifeMs = 300_000;
const futureSkewMs = 60_000;
const shape = /^(\d{1,16})\.([0-9a-f]{64})$/;

/**
 * The token of an internal call about one row, as agent-native makes it (AN-16, AN-17): `<ms since the epoch>.<hex hmac-sha256 of
 * "id:ms">` under the deployment's secret. Whoever has it can only make somebody look at that row again.
 */
export function signInternalToken(secret: string, id: string, now: number): string {
  return `${now}.${macOf(secret, id, now)}`;
}

/** True for a token of this id that is at most five minutes old and at most one ahead of us. */
export function isInternalToken(secret: string, id: string, token: string, now: number): boolean {
  const [, stamp = '', mac = ''] = shape.exec(token) ?? [];
  const at = Number(stamp);
  if (stamp === '' || now - at > lifeMs || at - now > futureSkewMs) return false;
  return timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(secret, id, stamp)));
}

function macOf(secret: string, id: string, stamp: number | string): string {
  return createHmac('sha256', secret).update(`${id}:${stamp}`).digest('hex');
}
