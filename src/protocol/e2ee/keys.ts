import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';
import { canonicalJson } from '../../kernel/canonical-json.js';
import { systemClock } from '../../kernel/clock.js';
import { E2eeError } from './errors.js';

/** A public key as `keys.json` lists it (RFC 7517, RFC 8037). Times are seconds since the epoch. */
export interface PublicKey {
  readonly kty: 'OKP';
  readonly crv: 'X25519' | 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly use: 'enc' | 'sig';
  readonly nbf?: number;
  readonly exp?: number;
  /** Id of the older signing key that vouches for this key, and its signature over `endorsedText`. */
  readonly endorsed_by?: string;
  readonly endorsement?: string;
}

/** A key pair: the public key with the private scalar `d`. Keep it secret. */
export type PrivateKey = PublicKey & { readonly d: string };

/** All keys of one agent or client, the newest of each use last. Older keys still open what was sent to them. */
export interface KeyRing {
  readonly keys: readonly PrivateKey[];
}

/** The public half of a key ring: the document at `keys.json`. */
export interface KeySet {
  readonly keys: readonly PublicKey[];
}

const curves = { enc: 'X25519', sig: 'Ed25519' } as const;
/** The shared beginning of the DER form of both curves (RFC 8410); the bytes of the key follow. */
const derHead = { X25519: '302e020100300506032b656e04220420', Ed25519: '302e020100300506032b657004220420' } as const;
const endorsementDomain = 'rialto-e2ee-v1 endorsement';

/** Generates a ring with one key to encrypt to and one key to sign with. */
export function generateKeys(options: KeyTimes = {}): KeyRing {
  return { keys: [newKey('enc', options), newKey('sig', options)] };
}

export interface KeyTimes {
  /** Seconds since the epoch from which, and until which, senders use the keys. Absent: no limit. */
  readonly nbf?: number;
  readonly exp?: number;
}

/**
 * Adds new keys of both uses to a ring. The signing key in use endorses them, so that a peer that pinned it accepts
 * them; when all have expired, the newest one does. All older keys stay. Throws `malformed` for a ring without private
 * keys.
 */
export function rotateKeys(ring: KeyRing, options: KeyTimes = {}): KeyRing {
  requirePrivateKeys(ring, 'sig');
  const signers = ring.keys.filter(({ use }) => use === 'sig');
  const endorser = signers.findLast((key) => isValid(key)) ?? signers.at(-1)!;
  const { keys } = generateKeys(options);
  return { keys: [...ring.keys, ...keys.map((key) => endorsed(key, endorser))] };
}

/**
 * Checks that a ring has private keys for each of the uses, and no key of them without its private half. Throws
 * `malformed`.
 */
export function requirePrivateKeys(ring: KeyRing, ...uses: readonly PublicKey['use'][]): void {
  const listed: unknown = (ring as Partial<KeyRing> | undefined)?.keys;
  const keys: readonly Partial<PrivateKey>[] = Array.isArray(listed) ? listed : [];
  for (const wanted of uses) {
    const own = keys.filter((key) => key?.use === wanted);
    if (own.length > 0 && own.every(({ d }) => typeof d === 'string' && /^[\w-]{43}$/.test(d))) continue;
    throw new E2eeError(
      'malformed',
      `keys: needs the private keys of "rialto keys e2ee new" or generateKeys; ` +
        (own.length > 0 ? `a key for use "${wanted}" is only public` : `there is no key for use "${wanted}"`),
    );
  }
}

/** Returns the key set to publish: no private scalar is in it. */
export function publicKeys({ keys }: KeyRing): KeySet {
  return { keys: keys.map(({ d: _, ...key }) => key) };
}

/**
 * Returns the newest key of a use that is valid now. Throws `key_expired` when there is none.
 * @param now milliseconds since the epoch.
 */
export function currentKey<Key extends PublicKey>(
  keys: readonly Key[],
  use: 'enc' | 'sig',
  now = systemClock.now(),
): Key {
  const key = keys.findLast((one) => one.use === use && isValid(one, now));
  if (!key) throw new E2eeError('key_expired', `there is no valid key for use "${use}"; publish a new one`);
  return key;
}

/**
 * True between `nbf` and `exp` of a key.
 * @param now milliseconds since the epoch.
 */
export function isValid({ nbf = 0, exp = Infinity }: PublicKey, now = systemClock.now()): boolean {
  return nbf * 1_000 <= now && now < exp * 1_000;
}

/** Reads a key set of a peer. Drops keys of other kinds; throws `malformed` for a document that is not a key set. */
export function readKeySet(value: unknown): KeySet {
  const keys = (value as Partial<KeySet> | null)?.keys;
  if (!Array.isArray(keys)) throw new E2eeError('malformed', 'a key set is an object with a list "keys"');
  const known = keys.filter(isPublicKey).map(withoutPrivate);
  const kids = new Set(known.map(({ kid }) => kid));
  if (kids.size < known.length) throw new E2eeError('malformed', 'the key set contains the same kid twice');
  return { keys: known };
}

/** True for a public key of this format. Its `kid` is its thumbprint, so a kid never means two keys. */
export function isPublicKey(value: unknown): value is PublicKey {
  if (typeof value !== 'object' || value === null) return false;
  const { kty, crv, x, kid, use, nbf, exp, endorsed_by, endorsement } = value as Record<string, unknown>;
  if (kty !== 'OKP' || (use !== 'enc' && use !== 'sig') || crv !== curves[use]) return false;
  if (typeof x !== 'string' || !/^[\w-]{43}$/.test(x) || kid !== thumbprint({ crv: curves[use], x })) return false;
  if (![nbf, exp].every((time) => time === undefined || Number.isSafeInteger(time))) return false;
  return [endorsed_by, endorsement].every((text) => text === undefined || typeof text === 'string');
}

/** Returns the thumbprint of a key (RFC 7638, SHA-256, base64url), which is its `kid`. */
function thumbprint({ crv, x }: Pick<PublicKey, 'crv' | 'x'>): string {
  return hash('sha256', canonicalJson({ crv, kty: 'OKP', x }), 'base64url');
}

/**
 * Checks the keys of a peer against the pinned ones, and returns the kids to pin, older ones before newer ones. A
 * pinned key must still be listed, and each new one must be endorsed by a pinned signing key, over any number of steps.
 * The newest pinned key to encrypt to stays listed and in use until an endorsed one replaces it. Throws `key_changed`.
 * @param pinned kids, as an earlier call returned them; an empty list trusts the first keys.
 */
export function checkPins({ keys }: KeySet, pinned: readonly string[]): string[] {
  // A list of pins does not tell the use of a key that is gone. So keys to encrypt to come last: one that is gone
  // behind the newest listed one is a key to encrypt to.
  const kids = (['sig', 'enc'] as const).flatMap((use) => keys.filter((key) => key.use === use)).map(({ kid }) => kid);
  if (pinned.length === 0) return kids;
  const trusted = new Map(keys.filter(({ kid }) => pinned.includes(kid)).map((key) => [key.kid, key]));
  if (trusted.size === 0) throw new E2eeError('key_changed', 'the agent no longer lists any of its pinned keys');
  for (const key of keys) if (isVouched(key, trusted)) trusted.set(key.kid, key);
  const strangers = keys.filter(({ kid }) => !trusted.has(kid)).map(({ kid }) => kid);
  if (strangers.length > 0)
    throw new E2eeError(
      'key_changed',
      `no pinned key endorses ${strangers.join(', ')}; compare these keys with the owner of the agent, then pin them`,
    );
  if (isRolledBack(trusted, keys, pinned))
    throw new E2eeError(
      'key_changed',
      'the keys would bring back an older key than the pinned ones; compare them with the owner of the agent',
    );
  return [...pinned.filter((kid) => !trusted.has(kid)), ...kids];
}

/** True for keys that make senders use an older key to encrypt to than the newest pinned one. */
function isRolledBack(trusted: ReadonlyMap<string, PublicKey>, keys: readonly PublicKey[], pinned: readonly string[]) {
  const listed = keys.filter(({ use }) => use === 'enc');
  const places = listed.map(({ kid }) => (pinned.includes(kid) ? pinned.indexOf(kid) : pinned.length));
  if (places.some((place, at) => at > 0 && place < places[at - 1]!)) return true;
  const newest = places.findLast((place) => place < pinned.length);
  if (newest !== undefined && pinned.slice(newest).some((kid) => !trusted.has(kid))) return true;
  // Only an endorsement covers the times of a key: without one, a relay could let the newer key expire.
  const current = listed.findLastIndex((key) => isValid(key));
  return current >= 0 && listed.slice(current + 1).some((key) => !isVouched(key, trusted));
}

function isVouched(key: PublicKey, trusted: ReadonlyMap<string, PublicKey>): boolean {
  const endorser = key.endorsed_by === undefined ? undefined : trusted.get(key.endorsed_by);
  return endorser !== undefined && isEndorsed(key, endorser);
}

/** Returns a key as node:crypto uses it. */
export function privateKeyObject({ crv, d }: Pick<PrivateKey, 'crv' | 'd'>): KeyObject {
  const der = Buffer.concat([Buffer.from(derHead[crv], 'hex'), Buffer.from(d, 'base64url')]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

export function publicKeyObject({ crv, x }: Pick<PublicKey, 'crv' | 'x'>): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv, x }, format: 'jwk' });
}

function newKey(use: 'enc' | 'sig', { nbf, exp }: KeyTimes): PrivateKey {
  const { privateKey } = use === 'enc' ? generateKeyPairSync('x25519') : generateKeyPairSync('ed25519');
  const { x, d } = privateKey.export({ format: 'jwk' }) as { x: string; d: string };
  const crv = curves[use];
  const times = { ...(nbf !== undefined && { nbf }), ...(exp !== undefined && { exp }) };
  return { kty: 'OKP', crv, x, kid: thumbprint({ crv, x }), use, ...times, d };
}

function endorsed(key: PrivateKey, endorser: PrivateKey): PrivateKey {
  const endorsement = sign(null, endorsedText(key), privateKeyObject(endorser)).toString('base64url');
  return { ...key, endorsed_by: endorser.kid, endorsement };
}

function isEndorsed(key: PublicKey, endorser: PublicKey): boolean {
  if (endorser.use !== 'sig' || key.endorsement === undefined) return false;
  return verify(null, endorsedText(key), publicKeyObject(endorser), Buffer.from(key.endorsement, 'base64url'));
}

/** The text that an endorsement signs: the domain, and the key in canonical JSON without its endorsement. */
function endorsedText({ kty, crv, x, kid, use, nbf, exp }: PublicKey): Buffer {
  return Buffer.from(`${endorsementDomain}\n${canonicalJson({ kty, crv, x, kid, use, nbf, exp })}`);
}

function withoutPrivate({ kty, crv, x, kid, use, nbf, exp, endorsed_by, endorsement }: PublicKey): PublicKey {
  const key = { kty, crv, x, kid, use, nbf, exp, endorsed_by, endorsement };
  return Object.fromEntries(Object.entries(key).filter(([, value]) => value !== undefined)) as unknown as PublicKey;
}
