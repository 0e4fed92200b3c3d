import { createPublicKey, generateKeyPairSync, randomBytes, sign, verify, type JsonWebKey } from 'node:crypto';
import { inspect } from 'node:util';
import pg from 'pg';
import { Pg } from '../../src/platform/database/pg.js';
import { SigningKeys } from '../../src/platform/secrets/signing-keys.js';
import { Vault } from '../../src/platform/secrets/vault.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

const at = { table: 'agent_cards', row: 'r1', org: 'o1' };

describe('Vault', () => {
  const vault = new Vault(randomBytes(32));

  it('opens a sealed secret only at its own place', () => {
    const sealed = vault.seal('canary', at);
    expect(sealed).not.toContain('canary');
    expect(vault.open(sealed, at).reveal()).toBe('canary');
    for (const elsewhere of [
      { ...at, table: 't' },
      { ...at, row: 'r2' },
      { ...at, org: 'o2' },
    ]) {
      expect(() => vault.open(sealed, elsewhere)).toThrow(expect.objectContaining({ code: 'internal' }));
    }
  });

  it('seals the same text differently each time', () => {
    expect(vault.seal('canary', at)).not.toBe(vault.seal('canary', at));
  });

  it('refuses changed text, a shortened tag and another key', () => {
    const sealed = vault.seal('canary', at);
    const [form, kid, body] = sealed.split('.') as [string, string, string];
    const bytes = Buffer.from(body, 'base64url');
    for (let index = 0; index < bytes.length; index++) {
      const changed = Buffer.from(bytes);
      changed[index]! ^= 1;
      expect(() => vault.open(`${form}.${kid}.${changed.toString('base64url')}`, at)).toThrow();
    }
    for (const length of [0, 5, 12, 20, 27, bytes.length - 1]) {
      const cut = bytes.subarray(0, length).toString('base64url');
      expect(() => vault.open(`${form}.${kid}.${cut}`, at)).toThrow();
    }
    for (const junk of ['', 'v1', 'v1.x', `v2.${kid}.${body}`]) {
      expect(() => vault.open(junk, at)).toThrow(expect.objectContaining({ code: 'internal' }));
    }
    expect(() => new Vault(randomBytes(32)).open(sealed, at)).toThrow(/RIALTO_ENCRYPTION_KEY/);
  });

  it('never prints an opened secret by accident', () => {
    const secret = vault.open(vault.seal('canary', at), at);
    expect([`${secret as unknown as string}`, JSON.stringify({ secret }), inspect({ secret })].join()).not.toContain(
      'canary',
    );
  });
});

describe('SigningKeys', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  const vault = new Vault(randomBytes(32));
  const data = Buffer.from('a checkpoint');
  const keys = (own = vault) => new SigningKeys(new Pg(pool), own);
  const signWith = async (by: SigningKeys) => {
    const { kid, sign: make } = await by.current();
    return { kid, signature: make(data) };
  };

  beforeAll(async () => {
    database = await createTestDatabase('keys');
    pool = new pg.Pool({ connectionString: database.url, max: 4 });
  });

  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  it('creates one key for processes that start at the same time, verifiable with its public half alone', async () => {
    const signed = await Promise.all([1, 2, 3].map(() => signWith(keys())));
    expect(new Set(signed.map(({ kid }) => kid)).size).toBe(1);
    const { rows } = await pool.query<{ kid: string; public_jwk: JsonWebKey; sealed: string }>(
      'select * from signing_keys',
    );
    expect(rows).toHaveLength(1);
    expect(rows[0]!.public_jwk).not.toHaveProperty('d');
    const outside = createPublicKey({ key: rows[0]!.public_jwk, format: 'jwk' });
    expect(verify(null, data, outside, Buffer.from(signed[0]!.signature, 'base64url'))).toBe(true);
    const [{ kid, signature }] = signed as [{ kid: string; signature: string }];
    const check = keys().verifier();
    expect(await check(data, kid, signature)).toBe('valid');
    expect(await check(Buffer.from('another'), kid, signature)).toBe('invalid');
    expect(await check(data, kid, 'AAAA')).toBe('invalid');
    expect(await check(data, 'k-unknown', signature)).toBe('unknown');
    const [row] = rows;
    const elsewhere = new SigningKeys(new Pg(pool), new Vault(randomBytes(32))).verifier([
      { ...row!.public_jwk, kid: row!.kid },
    ]);
    expect(await elsewhere(data, kid, signature)).toBe('valid');
  });

  it('rotates: a new key signs, the previous one is published until it retires; old signatures verify', async () => {
    const other = keys();
    const before = await signWith(other);
    const one = keys();
    const kid = await one.rotateKey(3_600);
    expect((await one.current()).kid).toBe(kid);
    expect((await one.publicKeys()).map((key) => key.kid)).toEqual([kid, before.kid]);
    expect(JSON.stringify(await one.publicKeys())).not.toMatch(/"d"/);
    await one.rotateKey(0);
    expect((await one.publicKeys()).map((key) => key.kid)).not.toContain(kid);
    expect(await one.verifier()(data, before.kid, before.signature)).toBe('valid');
  });

  it('rejects a key that was written into its table from outside', async () => {
    const forged = generateKeyPairSync('ed25519');
    const values = ['k-forged', forged.publicKey.export({ format: 'jwk' }), 'v1.x.y'];
    await pool.query(
      'insert into signing_keys (kid, public_jwk, sealed, retired_at) values ($1, $2, $3, now())',
      values,
    );
    const signature = sign(null, data, forged.privateKey).toString('base64url');
    expect(await keys().verifier()(data, 'k-forged', signature)).toBe('unknown');
  });

  it('reports a deployment with another encryption key', async () => {
    await expect(keys(new Vault(randomBytes(32))).current()).rejects.toThrow(/RIALTO_ENCRYPTION_KEY/);
  });
});
