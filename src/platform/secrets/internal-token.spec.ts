import { isInternalToken, signInternalToken } from './internal-token.js';

const secret = 'a-secret-of-at-least-thirty-two-bytes';
const now = 1_760_000_000_000;
// printf 'task-1:1760000000000' | openssl dgst -sha256 -hmac 'a-secret-of-at-least-thirty-two-bytes'
const vector = '1760000000000.eefa8b72490c899980cdd599ea96dcb4d44ec06442895ca6c68e469bf2a9f3e2';

describe('AN-17: the token of an internal call', () => {
  it('consists of the time and the HMAC of id and time', () => {
    expect(signInternalToken(secret, 'task-1', now)).toBe(vector);
    expect(isInternalToken(secret, 'task-1', vector, now)).toBe(true);
  });

  it.each([
    ['with another id', 'task-2', vector, now],
    ['older than five minutes', 'task-1', vector, now + 300_001],
    ['more than a minute in the future', 'task-1', vector, now - 60_001],
    ['in upper case', 'task-1', vector.toUpperCase(), now],
    ['cut short', 'task-1', vector.slice(0, -1), now],
    ['with another time', 'task-1', vector.replace('1760000000000', '1760000000001'), now],
    ['without a time', 'task-1', vector.slice(14), now],
    ['when it is empty', 'task-1', '', now],
  ])('is refused: %s', (_what, id, token, at) => {
    expect(isInternalToken(secret, id, token, at)).toBe(false);
  });

  it('is refused with another secret, and accepted at the limits of its lifetime', () => {
    expect(isInternalToken('another-secret-of-thirty-two-bytes!', 'task-1', vector, now)).toBe(false);
    for (const at of [now + 300_000, now - 60_000]) expect(isInternalToken(secret, 'task-1', vector, at)).toBe(true);
  });
});
