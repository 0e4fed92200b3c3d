import { createHmac, timingSafeEqual } from 'node:crypto';

const lifetimeMs = 300_000;
const futureSkewMs = 60_000;
const shape = /^(\d{1,16})\.([0-9a-f]{64})$/;

/**
 * Signs the token of an internal call about one row, in the format of agent-native (AN-16, AN-17): `<ms since the
 * epoch>.<hex hmac-sha256 of "id:ms">` with the deployment's secret. The token only allows its holder to trigger
 * another check of that row.
 */
export function signInternalToken(secret: string, id: string, now: number): string {
  return `${now}.${macOf(secret, id, now)}`;
}

/** True for a token of this id that is at most five minutes old, and at most one minute in the future. */
export function isInternalToken(secret: string, id: string, token: string, now: number): boolean {
  const [, stamp = '', mac = ''] = shape.exec(token) ?? [];
  const at = Number(stamp);
  if (stamp === '' || now - at > lifetimeMs || at - now > futureSkewMs) return false;
  return timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(secret, id, stamp)));
}

function macOf(secret: string, id: string, stamp: number | string): string {
  return createHmac('sha256', secret).update(`${id}:${stamp}`).digest('hex');
}
