import { RialtoError } from '../../kernel/errors.js';
import { E2eeError } from '../../protocol/e2ee/errors.js';
import { checkPins, type PublicKey } from '../../protocol/e2ee/keys.js';

/** Most keys that an agent may list, old ones included. */
export const maxKeys = 100;

/**
 * Returns the keys of an agent after it published `given`: the old ones stay in their place, new ones follow. Each
 * new key needs the endorsement of a listed signing key, as its pinned readers demand it. Pure. Throws `conflict` for
 * a key without one, and `unprocessable` for too many keys.
 * @param reset true replaces all keys. Peers that pinned the old ones refuse the new ones until they pin them.
 */
export function keysAfter(
  known: readonly PublicKey[],
  given: readonly PublicKey[],
  reset: boolean,
): readonly PublicKey[] {
  const kept = reset ? [] : known;
  const kids = new Set(kept.map(({ kid }) => kid));
  const keys = [...kept, ...given.filter(({ kid }) => !kids.has(kid))];
  if (keys.length > maxKeys)
    throw new RialtoError('unprocessable', { message: `the agent would have ${keys.length} keys; at most ${maxKeys}` });
  for (const use of ['enc', 'sig'] as const)
    if (!keys.some((key) => key.use === use))
      throw new RialtoError('unprocessable', {
        message: `keys: has no key for use "${use}"`,
        hint: 'publish a key to encrypt to (X25519, "enc") and a key to verify with (Ed25519, "sig")',
      });
  requireEndorsed(keys, [...kids]);
  return keys;
}

function requireEndorsed(keys: readonly PublicKey[], pinned: readonly string[]): void {
  try {
    checkPins({ keys }, pinned);
  } catch (error) {
    if (!(error instanceof E2eeError)) throw error;
    throw new RialtoError('conflict', {
      message: 'keys: a new key has no endorsement of a published signing key',
      hint: 'make it with "rialto keys e2ee rotate", or replace all keys with "reset": true',
    });
  }
}
