import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { RialtoError } from '../../kernel/errors.js';
import { Pg } from '../database/pg.js';
import { later, positional } from '../database/sql.js';
import { SnapshotCache } from '../database/snapshot-cache.js';
import { Vault } from './vault.js';

const place = (kid: string) => ({ table: 'signing_keys', row: kid, org: 'rialto' });
const keyLock = 7_262_912;
/**
 * How long a process may continue to use a key that another process retired; it is much shorter than any grace
 * period.
 */
const maxAgeMs = 5_000;
const only = 'deployment';

/** The key that signs at present. */
export interface Signer {
  readonly kid: string;
  /** Ed25519, base64url (RFC 8037 section 3.1). */
  readonly sign: (data: Uint8Array) => string;
}

/**
 * Checks a signature of a key. `unknown`: the key does not exist or cannot be opened, so nothing can be said about
 * the signature.
 */
export type SignatureCheck = (
  data: Uint8Array,
  kid: string,
  signature: string,
) => Promise<'valid' | 'invalid' | 'unknown'>;

/** A public key as a JWK (RFC 8037 section 2). */
export type PublicJwk = Readonly<Record<string, unknown>> & { readonly kid: string };

/**
 * Ed25519 keys of this deployment: created once, sealed at rest, with the public halves in the JWKS. One key signs. A
 * key that was rotated out stays in the JWKS until it retires, and verifies its signatures without a time limit.
 */
@Injectable()
export class SigningKeys {
  private readonly signers = new SnapshotCache<Signer>(
    { probe: () => this.activeKid(), load: (_, kid) => this.openSigner(kid) },
    maxAgeMs,
  );
  private readonly published = new SnapshotCache<readonly PublicJwk[]>(
    { probe: () => this.publishedKids(), load: (_, kids) => this.publicJwks(JSON.parse(kids) as string[]) },
    maxAgeMs,
  );

  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
  ) {}

  /** Returns the key that signs at present; creates it when there is none. */
  current(): Promise<Signer> {
    return this.signers.get(only);
  }

  /** Returns the same without a promise while it is cached. */
  peek(): Signer | undefined {
    return this.signers.peek(only);
  }

  /** Public keys that verifiers may trust at present: the signing key, and earlier keys until they retire. */
  async publicKeys(): Promise<readonly PublicJwk[]> {
    await this.current();
    return this.published.get(only);
  }

  /** Public keys that may have signed something since a time, also those that no longer sign. */
  async publicKeysSince(time: Date): Promise<readonly PublicJwk[]> {
    const rows = await this.pg.rows<{ kid: string }>(
      'signing-keys-since',
      `
      select kid
      from signing_keys
      where retired_at is null or retired_at >= :time
      order by created_at desc`,
      { time },
    );
    return this.publicJwks(rows.map(({ kid }) => kid));
  }

  /**
   * Creates a new key that signs from now on. The previous one stays in the JWKS for `graceSeconds`. Returns the id
   * of the new key.
   */
  async rotateKey(graceSeconds: number): Promise<string> {
    const kid = await this.withLock(async (client) => {
      const retire = `update signing_keys set retired_at = ${later(':graceMs')} where retired_at is null`;
      await client.query(positional(retire, { graceMs: graceSeconds * 1_000 }));
      return this.make(client);
    });
    this.signers.expireAll();
    this.published.expireAll();
    return kid;
  }

  /**
   * Returns a check for many signatures that reads and opens each key once. Keys in `trusted` are not read from the
   * database.
   */
  verifier(trusted: readonly PublicJwk[] = []): SignatureCheck {
    const given = keyFinder(trusted);
    return signatureCheck(async (kid) => given(kid) ?? this.publicKey(kid));
  }

  /**
   * Returns the public half of a key that the vault sealed, so that a key which an attacker writes into the table
   * verifies nothing. Undefined when the key does not exist. Throws `unavailable` when this process can open no
   * signing key at all, because its encryption key is then wrong.
   */
  private async publicKey(kid: string): Promise<KeyObject | undefined> {
    const sealed = await this.sealed(kid);
    if (sealed === undefined) return undefined;
    try {
      return createPublicKey(this.vault.open(sealed, place(kid)).reveal());
    } catch (error) {
      if (error instanceof RialtoError && error.code === 'unavailable') await this.current();
      return undefined;
    }
  }

  private async activeKid(): Promise<string> {
    return (
      (await this.newest(this.pg.pool)) ??
      this.withLock(async (client) => (await this.newest(client)) ?? this.make(client))
    );
  }

  private async newest(client: Pick<PoolClient, 'query'>): Promise<string | undefined> {
    const { rows } = await client.query<{ kid: string }>(
      `
      select kid
      from signing_keys
      where retired_at is null
      order by created_at desc
      limit 1`,
    );
    return rows[0]?.kid;
  }

  private async make(client: PoolClient): Promise<string> {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const kid = `k${publicKey.export({ format: 'jwk' }).x!.slice(0, 10)}`;
    const sealed = this.vault.seal(privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(), place(kid));
    const insert = 'insert into signing_keys (kid, public_jwk, sealed) values (:kid, :published, :sealed)';
    await client.query(positional(insert, { kid, published: jwkOf(publicKey, kid), sealed }));
    return kid;
  }

  private async openSigner(kid: string): Promise<Signer> {
    const privateKey = createPrivateKey(this.vault.open((await this.sealed(kid))!, place(kid)).reveal());
    return { kid, sign: (data) => sign(null, data, privateKey).toString('base64url') };
  }

  private async sealed(kid: string): Promise<string | undefined> {
    const [row] = await this.pg.rows<{ sealed: string }>(
      'signing-key',
      'select sealed from signing_keys where kid = :kid',
      { kid },
    );
    return row?.sealed;
  }

  private async publishedKids(): Promise<string> {
    const [row] = await this.pg.rows<{ kids: string }>(
      'signing-keys-public',
      `
      select coalesce(json_agg(kid order by created_at desc), '[]')::text as kids
      from signing_keys
      where retired_at is null or retired_at > now()`,
    );
    return row!.kids;
  }

  /** Returns the keys that the vault opens. The public halves in the table are not trusted, as in `publicKey`. */
  private async publicJwks(kids: readonly string[]): Promise<PublicJwk[]> {
    const found: PublicJwk[] = [];
    for (const kid of kids) {
      const key = await this.publicKey(kid);
      if (key) found.push(jwkOf(key, kid));
    }
    return found;
  }

  private async withLock<Result>(work: (client: PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.pg.connect();
    try {
      await client.query('begin');
      await client.query(positional('select pg_advisory_xact_lock(:key)', { key: keyLock }));
      const result = await work(client);
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  }
}

/** Returns a check with public keys alone, for a place without the database. */
export function publicKeyCheck(keys: readonly PublicJwk[]): SignatureCheck {
  const find = keyFinder(keys);
  return signatureCheck((kid) => Promise.resolve(find(kid)));
}

function keyFinder(keys: readonly PublicJwk[]): (kid: string) => KeyObject | undefined {
  const opened = new Map(keys.map((key) => [key.kid, createPublicKey({ key, format: 'jwk' })]));
  return (kid) => opened.get(kid);
}

/** Returns a check that looks each key up once. */
function signatureCheck(find: (kid: string) => Promise<KeyObject | undefined>): SignatureCheck {
  const found = new Map<string, Promise<KeyObject | undefined>>();
  return async (data, kid, signature) => {
    if (!found.has(kid)) found.set(kid, find(kid));
    const key = await found.get(kid);
    if (key === undefined) return 'unknown';
    return verify(null, data, key, Buffer.from(signature, 'base64url')) ? 'valid' : 'invalid';
  };
}

function jwkOf(key: KeyObject, kid: string): PublicJwk {
  return { ...key.export({ format: 'jwk' }), kid, alg: 'EdDSA', use: 'sig' };
}
