import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { RialtoError } from '../../kernel/errors.js';

/** A secret in memory. It prints as `[redacted]` when it is converted to text by accident. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the plain value; called immediately before use. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[redacted]';
  }

  toJSON(): string {
    return '[redacted]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[redacted]';
  }
}

/** The place that a sealed value belongs to. A value that is moved to another row or org cannot be opened there. */
export interface SealedAt {
  readonly table: string;
  readonly row: string;
  readonly org: string;
}

const version = 'v1';
const maxOrgKeys = 10_000;
const keyBytes = 32;

/** A key of the deployment, and the keys derived from it. */
class MasterKey {
  readonly kid: string;
  /** A cache, because deriving a key costs more than opening a value. */
  private readonly orgKeys = new BoundedMap<string, KeyObject>(maxOrgKeys);

  constructor(private readonly key: Buffer) {
    this.kid = createHash('sha256').update('rialto-vault').update(key).digest('hex').slice(0, 8);
  }

  /** A key object, because Node 24 takes four times as long for an HMAC with the bytes of a key. */
  derive(purpose: string): KeyObject {
    return createSecretKey(Buffer.from(hkdfSync('sha256', this.key, 'rialto', purpose, keyBytes)));
  }

  ofOrg(org: string): KeyObject {
    const known = this.orgKeys.get(org);
    if (known) return known;
    const key = this.derive(`org:${org}`);
    this.orgKeys.set(org, key);
    return key;
  }
}

/**
 * Seals secrets at rest: AES-256-GCM with a key per org that is derived from the deployment's key (HKDF-SHA-256), a
 * random 96-bit nonce, and the place as associated data.
 */
export class Vault {
  private readonly current: MasterKey;
  private readonly keys: ReadonlyMap<string, MasterKey>;

  /**
   * @param key 32 bytes, seals and opens.
   * @param other 32 bytes, opens values that the previous or the next key sealed.
   */
  constructor(key: Buffer, other?: Buffer) {
    this.current = new MasterKey(key);
    const all = [this.current, ...(other ? [new MasterKey(other)] : [])];
    this.keys = new Map(all.map((one) => [one.kid, one]));
  }

  /** The prefix of all values that the current key sealed. */
  get mark(): string {
    return `${version}.${this.current.kid}.`;
  }

  /** Returns a text of the form `v1.<kid>.<base64url of nonce, ciphertext and tag>`. */
  seal(plain: string, at: SealedAt): string {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.current.ofOrg(at.org), nonce).setAAD(aad(at));
    const body = Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${this.mark}${body.toString('base64url')}`;
  }

  /** Throws `unavailable` when neither key sealed the value, `internal` when the value was changed or moved. */
  open(sealed: string, at: SealedAt): Secret {
    const [form, kid, text] = sealed.split('.');
    if (form !== version || text === undefined) throw new RialtoError('internal', { message: 'not a sealed value' });
    const key = this.keys.get(kid!);
    if (!key)
      throw new RialtoError('unavailable', { message: 'RIALTO_ENCRYPTION_KEY is not the key that sealed this secret' });
    const body = Buffer.from(text, 'base64url');
    const decipher = createDecipheriv('aes-256-gcm', key.ofOrg(at.org), body.subarray(0, 12)).setAAD(aad(at));
    decipher.setAuthTag(body.subarray(-16));
    try {
      return new Secret(Buffer.concat([decipher.update(body.subarray(12, -16)), decipher.final()]).toString('utf8'));
    } catch (cause) {
      throw new RialtoError('internal', { message: 'a sealed secret was changed or moved', cause });
    }
  }

  /** Derives a key for one purpose from the current key of the deployment. */
  derive(purpose: string): KeyObject {
    return this.current.derive(purpose);
  }

  /**
   * Derives the keys for one purpose, the current one first. The others verify signatures from before or after a
   * change of the deployment's key.
   */
  deriveAll(purpose: string): readonly [KeyObject, ...KeyObject[]] {
    const [first, ...others] = [...this.keys.values()].map((key) => key.derive(purpose));
    return [first!, ...others];
  }
}

function aad(at: SealedAt): Buffer {
  return Buffer.from(`${at.table}\n${at.row}\n${at.org}`);
}
