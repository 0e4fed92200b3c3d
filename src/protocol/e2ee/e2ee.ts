/*
 * `rialto/e2ee`: end-to-end encryption of A2A messages (docs/encryption.md). The gateway relays the result unread.
 */
export { decrypt, StreamOpener, type Decrypted, type Incoming } from './decrypt.js';
export { encrypt, StreamSealer, type Outgoing } from './encrypt.js';
export { envelopeVersion, type Envelope, type Place } from './envelope.js';
export { E2eeError, type E2eeErrorCode } from './errors.js';
export {
  checkPins,
  generateKeys,
  publicKeys,
  readKeySet,
  rotateKeys,
  type KeyRing,
  type KeySet,
  type KeyTimes,
  type PrivateKey,
  type PublicKey,
} from './keys.js';
export { partsOfPayload, partsPayload, partsType } from './parts.js';
export { MemoryReplayGuard, type ReplayGuard } from './replay-guard.js';
