import { generateKeys, publicKeys } from '../../../src/protocol/e2ee/keys.js';

/** Returns a body that replaces the keys of a published agent. */
export const newKeys = () => ({ ...publicKeys(generateKeys()), reset: true });
