import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from 'node:crypto';
import { Pg } from '../database/pg.js';
import { Vault } from './vault.js';

const place = (kid: string) => ({ table: 'signing_keys', row: kid, org: 'rialto' });
const keyLock = 7_262_912;

interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

/** Ed25519 keys of this deployment: made once, sealed at rest, public halves in the JWKS. */
export class SigningKeys {
  private active?: Promise<SigningKey>;

  constructor(
    private readonly pg: Pg,
    private readonly vault: Vault,
  ) {}

  async sign(data: Uint8Array): Promise<{ kid: string; signature: string }> {
    const { kid, privateKey } = await this.activeKey();
    return { kid, signature: sign(null, data, privateKey).toString('base64url') };
  }

  /** False for a wrong signature and for a key that is not ours: whoever can write rows cannot seal. */
  async verify(data: Uint8Array, kid: string, signature: string): Promise<boolean> {
    const [row] = await this.pg.rows<{ sealed: string }>(
      'signing-key',
      'select sealed from signing_keys where kid = $1',
      [kid],
    );
    if (row === undefined) return false;
    let ours: KeyObject;
    try {
      ours = createPublicKey(this.vault.open(row.sealed, place(kid)).reveal());
    } catch {
      return false;
    }
    return verify(null, data, ours, Buffer.from(signature, 'base64url'));
  }

  private activeKey(): Promise<SigningKey> {
    this.active ??= this.loadOrMake().catch((error: unknown) => {
      this.active = undefined;
      throw error;
    });
    return this.active;
  }

  private async loadOrMake(): Promise<SigningKey> {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const jwk = publicKey.export({ format: 'jwk' });
    const kid = `k${jwk.x!.slice(0, 10)}`;
    const sealed = this.vault.seal(privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(), place(kid));
    const client = await this.pg.pool.connect();
    try {
      await client.query('begin');
      await client.query('select pg_advisory_xact_lock($1)', [keyLock]);
      await client.query(
        `insert into signing_keys (kid, public_jwk, sealed) select $1, $2, $3 where not exists (select from signing_keys where retired_at is null)`,
        [kid, { ...jwk, kid, alg: 'EdDSA', use: 'sig' }, sealed],
      );
      const { rows } = await client.query<{ kid: string; sealed: string }>(
        'select kid, sealed from signing_keys where retired_at is null order by created_at desc limit 1',
      );
      await client.query('commit');
      const row = rows[0]!;
      return { kid: row.kid, privateKey: createPrivateKey(this.vault.open(row.sealed, place(row.kid)).reveal()) };
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  }
}
