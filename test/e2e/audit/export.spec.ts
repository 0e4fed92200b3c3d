import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { AuditAnchor } from '../../../src/audit/anchors/audit-anchor.js';
import { AuditCheckpoints } from '../../../src/audit/audit-checkpoints.js';
import { wholeEvent } from '../../../src/audit/audit-event.store.js';
import { AuditInspectionService } from '../../../src/audit/audit-inspection.service.js';
import type { OrgId } from '../../../src/kernel/ids.js';
import { loadSettings } from '../../../src/platform/config/settings.js';
import { AuditRetention } from '../../../src/audit/audit.retention.js';
import { canonicalJson } from '../../../src/kernel/canonical-json.js';
import type { PublicJwk } from '../../../src/platform/secrets/signing-keys.js';
import { tamper, tampered } from '../../support/gateway/audit-tables.js';
import { rialto } from '../../support/gateway/cli.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';

const genesis = '0'.repeat(64);
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
interface Line {
  kind: string;
  data: any;
  lines?: number;
}

async function* linesOf(lines: readonly string[]): AsyncGenerator<string> {
  yield* lines;
}

describe('an export of the audit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-export-'));
  const anchor = join(folder, 'anchor.jsonl');
  const jwksFile = join(folder, 'jwks.json');
  let gateway: TestGateway;
  let token: string;
  let acme: string;
  let globex: string;

  const idOf = async (slug: string) =>
    (await gateway.sql('select id from orgs where slug = $1', [slug]))[0]!.id as string;
  const act = (name: string) => gateway.call('POST', '/api/keys', { name, role: 'viewer' }, token);
  const keysOf = (org: string, headers = {}) =>
    gateway.call('GET', `/.well-known/audit/${org}/jwks.json`, undefined, null, headers);
  const exported = async (of = token): Promise<Line[]> => {
    const { body } = await gateway.call('GET', '/api/audit/export', undefined, of);
    return body
      .trimEnd()
      .split('\n')
      .map((line: string) => JSON.parse(line));
  };
  const saved = (lines: readonly unknown[], name = 'audit.jsonl'): string => {
    const file = join(folder, name);
    writeFileSync(file, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
    return file;
  };
  const jwksOf = (file: string): PublicJwk[] => JSON.parse(readFileSync(file, 'utf8')).keys;
  /** Verifies a file as the command does, in this process. */
  const inspect = async (file: string, trusted?: PublicJwk[], anchored?: readonly string[]) => {
    const report = await AuditInspectionService.reportOfExport(file, trusted, anchored && linesOf(anchored));
    return { report, org: report.orgs[0]! };
  };
  /** Runs the command without any setting, so it has neither a database nor an encryption key. */
  const offline = async (file: string, ...args: string[]) => {
    const { code, stdout, stderr } = await rialto(['audit', 'verify', file, '--json', ...args], {}, folder);
    const report = stdout === '' ? undefined : JSON.parse(stdout);
    return { code, stderr, report, org: report?.orgs[0] };
  };

  beforeAll(async () => {
    // A process with the role `api` runs no sweeper, so no other process writes.
    gateway = await startTestGateway({
      RIALTO_ROLE: 'api',
      RIALTO_AUDIT_RETENTION_DAYS: '30',
      RIALTO_AUDIT_ANCHOR_FILE: anchor,
    });
    token = await gateway.tokenOf('acme', 'ann', 'admin');
    await gateway.tokenOf('globex', 'gina', 'admin');
    [acme, globex] = [await idOf('acme'), await idOf('globex')];
    for (let round = 0; round < 3; round++) {
      for (let event = 0; event < 3; event++) await act(`round ${round} event ${event}`);
      await gateway.call('POST', '/api/audit/verify', undefined, token);
      await gateway.gateway.get(AuditCheckpoints).sweep();
    }
    await gateway.gateway.get(AuditAnchor).sweep();
    writeFileSync(jwksFile, JSON.stringify((await keysOf(acme)).body));
  });
  afterAll(async () => {
    await gateway.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('RE-85 every event is covered by a signature that the public keys of the org alone verify', async () => {
    const { keys } = (await keysOf(acme)).body;
    const lines = await exported();
    let prevHash = genesis;
    const hashes = new Map<number, string>();
    for (const { data } of lines.filter(({ kind }) => kind === 'event')) {
      const hash = sha256(canonicalJson(data.event) + prevHash);
      expect(data).toMatchObject({ sequence: hashes.size + 1, prevHash, hash });
      hashes.set(data.sequence, (prevHash = hash));
    }
    const checkpoints = lines.filter(({ kind }) => kind === 'checkpoint').map(({ data }) => data);
    expect(checkpoints.length).toBeGreaterThan(3);
    for (const { kid, signature, ...statement } of checkpoints) {
      expect(statement.hash).toBe(hashes.get(statement.sequence));
      const key = createPublicKey({ key: keys.find((one: { kid: string }) => one.kid === kid), format: 'jwk' });
      const [bytes, proof] = [Buffer.from(canonicalJson(statement)), Buffer.from(signature, 'base64url')];
      expect(verify(null, bytes, key, proof)).toBe(true);
      expect(verify(null, Buffer.from(canonicalJson({ ...statement, number: 99 })), key, proof)).toBe(false);
    }
    expect(checkpoints.at(-1).sequence).toBe(hashes.size);
    expect(lines.findLast(({ kind }) => kind === 'event')!.data.event).toMatchObject({ verb: 'audit.export' });
  });

  it('RE-85 the public keys of an org are for everyone, cached, and empty for an unknown org', async () => {
    const { status, headers, body } = await keysOf(acme);
    expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=300, stale-while-revalidate=3600']);
    expect(body.keys).toEqual([
      { crv: 'Ed25519', kty: 'OKP', alg: 'EdDSA', use: 'sig', kid: expect.any(String), x: expect.any(String) },
    ]);
    const etag = headers.get('etag')!;
    expect((await keysOf(acme, { 'If-None-Match': etag })).status).toBe(304);
    for (const unknown of ['0197c2a0-0000-7000-8000-000000000000', 'acme', 'no org', "'", '%00']) {
      const answer = await keysOf(unknown);
      expect([answer.status, answer.body]).toEqual([200, { keys: [] }]);
      expect(answer.headers.get('etag')).not.toBe(etag);
    }
  });

  it('RE-85 a key stays in the JWKS of the org after its rotation, and a forged key never gets there', async () => {
    const [before] = (await keysOf(acme)).body.keys;
    const env = { DATABASE_URL: gateway.database.url, A2A_SECRET: testSecret, RIALTO_DATA_DIR: gateway.dataDir };
    const { code, stdout } = await rialto(['keys', 'rotate', '--signing', '--grace', '0'], env);
    expect(code).toBe(0);
    const { publicKey } = generateKeyPairSync('ed25519');
    const forged = JSON.stringify({ ...publicKey.export({ format: 'jwk' }), kid: 'kforged', alg: 'EdDSA', use: 'sig' });
    await gateway.sql(`insert into signing_keys (kid, public_jwk, sealed) values ('kforged', $1, 'v1.x')`, [forged]);
    const kids = async (path: string): Promise<string[]> =>
      (await gateway.call('GET', path, undefined, null)).body.keys.map(({ kid }: { kid: string }) => kid);
    expect((await kids(`/.well-known/audit/${acme}/jwks.json`)).sort()).toEqual([before.kid, stdout.trim()].sort());
    await gateway.sql(`delete from signing_keys where kid = 'kforged'`);
    const late = await gateway.tokenOf('initech', 'ian', 'admin');
    expect(late).toBeDefined();
    expect(await kids(`/.well-known/audit/${await idOf('initech')}/jwks.json`)).toEqual([stdout.trim()]);
    writeFileSync(jwksFile, JSON.stringify((await keysOf(acme)).body));
  });

  it('RE-86 verifies offline, without database and settings, with its own keys or with those of the org', async () => {
    const lines = await exported();
    const file = saved(lines);
    const events = lines.filter(({ kind }) => kind === 'event').length;
    const own = await offline(file);
    expect([own.code, own.report.verdict, own.org]).toEqual([
      0,
      'intact',
      expect.objectContaining({ orgId: acme, slug: 'acme', eventCount: events, firstSequence: 1, brokenAt: null }),
    ]);
    expect(own.stderr).toContain('the public keys are those of the export');
    const trusted = await offline(file, '--jwks', jwksFile, '--against', anchor);
    const end = `the export was made at ${lines[0]!.data.at} and ends at event ${events}\n`;
    expect([trusted.code, trusted.stderr, trusted.org.anchor]).toMatchObject([0, end, { checked: 3, newer: 0 }]);
    expect((await offline(file, '--jwks', saved([{ keys: [] }], 'none.json'))).code).toBe(1);
    expect(await offline(join(folder, 'absent'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('absent cannot be read: ENOENT'),
    });
    expect((await offline(file, '--org', 'acme')).stderr).toContain('--org is for the database');
  });

  it('RE-86 contains one org only, is refused to members, and has no secret', async () => {
    const member = await gateway.tokenOf('acme', 'mia', 'member');
    expect((await gateway.call('GET', '/api/audit/export', undefined, member)).status).toBe(403);
    const lines = await exported(await gateway.tokenOf('globex', 'gina', 'admin'));
    expect(lines[0]).toMatchObject({ kind: 'audit', data: { orgId: globex, slug: 'globex' } });
    for (const { kind, data } of lines) if (kind === 'event') expect(data.event.orgId).toBe(globex);
    expect(lines.at(-1)).toMatchObject({ kind: 'end', lines: lines.length - 1, data: { orgId: globex } });
    expect(JSON.stringify(lines)).not.toContain(testSecret);
    expect((await inspect(saved(lines, 'globex.jsonl'))).report.verdict).toBe('intact');
  });

  it('RE-86 has the documented lines and members, which a SIEM reads', async () => {
    const page = readFileSync(join(process.cwd(), 'docs', 'operate.md'), 'utf8');
    const [, section] = page.split('### Read an export with a SIEM');
    const documented = new Set(section!.split('**Known limits**')[0]!.match(/(?<=`)\w+(?=`)/g));
    await gateway.call('POST', '/api/keys', { name: 'no', role: 'viewer' }, await gateway.tokenOf('acme', 'mia'));
    const lines = await exported();
    const members = (all: object[]) => [...new Set(all.flatMap((one) => Object.keys(one)))].sort();
    const dataOf = (kind: string) => lines.filter((line) => line.kind === kind).map(({ data }) => data);
    expect(new Set(lines.map(({ kind }) => kind))).toEqual(new Set(['audit', 'event', 'checkpoint', 'end']));
    expect(members(dataOf('audit'))).toEqual(['at', 'keys', 'orgId', 'slug', 'version']);
    expect(members(dataOf('event'))).toEqual(['event', 'hash', 'opened', 'prevHash', 'sequence']);
    const events = dataOf('event').map(({ event }) => event);
    expect(events.map(({ outcome }) => outcome)).toEqual(expect.arrayContaining(['completed', 'denied']));
    expect(members(events).filter((name) => !documented.has(name))).toEqual([]);
    for (const event of events) {
      expect(event.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(Object.keys(event)).toEqual(expect.arrayContaining(['id', 'orgId', 'at', 'type']));
    }
    const opened = dataOf('event').flatMap((data) => data.opened);
    expect(members(opened)).toEqual(['facts', 'key', 'salt']);
    const sealed = events.flatMap((event) => event.sealed.map((one: any) => `${one.key} ${one.commitment}`));
    for (const { key, ...proof } of opened) expect(sealed).toContain(`${key} ${sha256(canonicalJson(proof))}`);
  });

  describe('is recognised after a change', () => {
    let lines: Line[];
    const at = (sequence: number) =>
      lines.findIndex(({ kind, data }) => kind === 'event' && data.sequence === sequence);
    const changed = (change: (copy: Line[]) => void): string => {
      const copy = structuredClone(lines);
      change(copy);
      return saved(copy, 'changed.jsonl');
    };
    beforeAll(async () => void (lines = await exported()));

    it.each<[string, number, (copy: Line[]) => void]>([
      ['of an event', 5, (copy) => (copy[at(5)]!.data.event.outcome = 'denied')],
      ['of the org of an event', 5, (copy) => (copy[at(5)]!.data.event.orgId = 'x')],
      ['that deletes an event', 5, (copy) => copy.splice(at(5), 1)],
      ['that deletes the first events', 1, (copy) => copy.splice(1, 2)],
      [
        'of a checkpoint',
        3,
        (copy) => (copy.find(({ kind }) => kind === 'checkpoint')!.data.at = '2020-01-01T00:00:00Z'),
      ],
    ])('%s: event %i is named', async (_what, sequence, change) => {
      const { org, report } = await inspect(changed(change), jwksOf(jwksFile));
      expect([report.verdict, org.brokenAt]).toEqual(['changed', sequence]);
    });

    it.each<[string, RegExp, (copy: Line[]) => void]>([
      ['without its end', /its last line is missing/, (copy) => copy.pop()],
      ['without its last checkpoint', /no checkpoint signs the events after/, (copy) => copy.splice(-2, 1)],
      ['with lines that are missing', /the export had \d+ lines and has/, (copy) => copy.splice(-3, 2)],
      ['without a checkpoint', /nothing is signed/, (copy) => copy.splice(1, copy.length - 2)],
    ])('cannot be verified %s and without its signed end', async (_what, doubt, change) => {
      const file = changed((copy) => (change(copy), delete copy.find(({ kind }) => kind === 'end')?.data));
      const { report, org } = await inspect(file, jwksOf(jwksFile));
      const found = [report.verdict, org.verdict, org.valid, report.doubts.join()];
      expect(found).toEqual(['unverifiable', 'unverifiable', false, expect.stringMatching(doubt)]);
    });

    it.each<[string, string, (copy: Line[]) => void]>([
      ['no header', 'line 1 is not the header', (copy) => copy.shift()],
      ['a checkpoint of another org', 'has a checkpoint of another org', (copy) => (copy[0]!.data.orgId = globex)],
      ['another kind of line', 'line 2 has a wrong', (copy) => (copy[1]!.kind = 'task')],
    ])('is refused with %s', async (_what, message, change) => {
      await expect(inspect(changed(change))).rejects.toMatchObject({
        code: 'unprocessable',
        message: expect.stringContaining(message),
      });
    });

    it('is refused when it is another file', async () => {
      expect(await offline(saved(['{"kind":'], 'broken.jsonl'))).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('line 1 is not JSON'),
      });
      await expect(inspect(saved([], 'empty.jsonl'))).rejects.toThrow('it is empty');
    });
  });

  it('X3.1 a person with the password of the database is detected, and the first wrong event is named', async () => {
    const rows = await gateway.sql<{ id: string; event: any; sequence: number }>(
      `select e.id, ${wholeEvent} as event, c.sequence::int
       from audit_chain c join audit_events e on e.id = c.event_id
       where c.org_id = $1
       order by c.sequence`,
      [acme],
    );
    const anchored = readFileSync(anchor, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const [first, second, third] = anchored.filter(({ orgId }) => orgId === acme);
    expect([first.sequence, second.sequence, third.sequence]).toEqual([3, 6, 9]);
    const where = (sequence: string) =>
      `(select event_id from audit_chain where org_id = '${acme}' and sequence ${sequence})`;
    /** Returns statements that write a chain of these events and sign its checkpoints with a new key. */
    const rewritten = (events: readonly { id: string; event: any }[]): string[] => {
      const { privateKey, publicKey } = generateKeyPairSync('ed25519');
      const jwk = JSON.stringify({ ...publicKey.export({ format: 'jwk' }), kid: 'knew', alg: 'EdDSA', use: 'sig' });
      let prevHash = genesis;
      const hashes = events.map(({ event }) => (prevHash = sha256(canonicalJson(event) + prevHash)));
      const statement = {
        orgId: acme,
        number: 1,
        prevHash: genesis,
        sequence: events.length,
        hash: prevHash,
        at: first.at,
      };
      const signed = (of: object): string =>
        sign(null, Buffer.from(canonicalJson(of)), privateKey).toString('base64url');
      const { number: _number, prevHash: _prev, ...plain } = statement;
      return [
        `delete from audit_chain where org_id = '${acme}'`,
        `delete from audit_checkpoints where org_id = '${acme}'`,
        ...events.map(
          ({ id, event }) =>
            `update audit_events set event = '${JSON.stringify(event).replaceAll("'", "''")}' where id = '${id}'`,
        ),
        ...events.map(
          ({ id }, index) =>
            `insert into audit_chain (org_id, sequence, event_id, prev_hash, hash, whole)
             values ('${acme}', ${index + 1}, '${id}', '${hashes[index - 1] ?? genesis}', '${hashes[index]}', true)`,
        ),
        `insert into signing_keys (kid, public_jwk, sealed, retired_at) values ('knew', '${jwk}', 'v1.x', now())`,
        `insert into audit_checkpoints
           (org_id, number, prev_hash, sequence, hash, at, kid, signature, chain_signature)
         values ('${acme}', 1, '${genesis}', ${events.length}, '${prevHash}', '${first.at}', 'knew',
                 '${signed(plain)}', '${signed(statement)}')`,
      ];
    };
    const edited = (index: number) =>
      rows.map((row, place) => (place === index ? { ...row, event: { ...row.event, outcome: 'denied' } } : row));
    const attacks: [string, number, string[]][] = [
      [
        'an edit',
        5,
        [`update audit_events set event = jsonb_set(event, '{outcome}', '"denied"') where id = ${where('= 5')}`],
      ],
      ['a deletion in the middle', 4, [`delete from audit_events where id = ${where('= 4')}`]],
      [
        'a deletion in the middle with its link',
        4,
        [
          `delete from audit_events where id = ${where('= 4')}`,
          `delete from audit_chain where org_id = '${acme}' and sequence = 4`,
        ],
      ],
      [
        'a deletion of the tail with its checkpoints',
        8,
        [
          `delete from audit_events where id in ${where('> 7')}`,
          `delete from audit_chain where org_id = '${acme}' and sequence > 7`,
          `delete from audit_checkpoints where org_id = '${acme}' and sequence > 7`,
        ],
      ],
      ['a new chain with a new key', 1, rewritten(edited(0))],
      ['a new chain from event 5 on: the first event that no anchored checkpoint confirms', 4, rewritten(edited(4))],
      ['a shorter new chain', 1, rewritten(edited(0).slice(0, 2))],
    ];
    const anchorLines = readFileSync(anchor, 'utf8').split('\n');
    const env = { DATABASE_URL: gateway.database.url, A2A_SECRET: testSecret, RIALTO_DATA_DIR: gateway.dataDir };
    const [dataSource, settings] = [gateway.gateway.get(DataSource), loadSettings({ NODE_ENV: 'test', ...env })];
    for (const [attack, brokenAt, statements] of attacks)
      await tampered(gateway, statements, async () => {
        const inside = await AuditInspectionService.open(dataSource, settings, jwksOf(jwksFile)).report(
          acme as OrgId,
          linesOf(anchorLines),
        );
        expect([attack, inside.verdict, inside.orgs[0]!.brokenAt]).toEqual([attack, 'changed', brokenAt]);
        // The gateway exports what it has; the auditor has the anchor and the keys from before. When the gateway writes
        // after a cut, the new events replace the removed ones: the first event without confirmation is named.
        const outside = await inspect(saved(await exported(), 'attacked.jsonl'), jwksOf(jwksFile), anchorLines);
        expect([attack, outside.report.verdict, outside.org.brokenAt]).toEqual([
          attack,
          'changed',
          attack.includes('tail') ? 7 : brokenAt,
        ]);
      });
    expect((await gateway.call('POST', '/api/audit/verify', undefined, token)).body).toMatchObject({
      verdict: 'intact',
    });
  });

  it('RE-86 an export after retention begins at the signed cut', async () => {
    await tamper(gateway, [
      `update audit_events e set at = past.at, event = jsonb_set(event, '{at}', to_jsonb(past.text)) from (
         select id, at - interval '40 days' as at,
           to_char((at - interval '40 days') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text
         from audit_events) past
       where past.id = e.id and e.org_id = '${globex}'`,
      ...['audit_chain', 'audit_checkpoints', 'audit_anchors'].map(
        (table) => `delete from ${table} where org_id = '${globex}'`,
      ),
      `insert into audit_pending (event_id, org_id) select id, org_id from audit_events where org_id = '${globex}'`,
    ]);
    const gina = await gateway.tokenOf('globex', 'gina', 'admin');
    await gateway.call('POST', '/api/audit/verify', undefined, gina);
    await gateway.call('POST', '/api/keys', { name: 'young', role: 'viewer' }, gina);
    await exported(gina);
    await gateway.gateway.get(AuditAnchor).sweep();
    await gateway.gateway.get(AuditRetention).sweep();
    const lines = await exported(gina);
    const cut = lines.find(({ kind, data }) => kind === 'checkpoint' && data.cut)!.data;
    expect(cut.sequence).toBeGreaterThan(0);
    const kept = await inspect(saved(lines, 'cut.jsonl'));
    expect([kept.report.verdict, kept.org.firstSequence]).toEqual(['intact', cut.sequence + 1]);
    const forged = lines.map((line) =>
      line.data === cut ? { ...line, data: { ...cut, sequence: cut.sequence - 1 } } : line,
    );
    expect((await inspect(saved(forged, 'cut-forged.jsonl'))).report.verdict).toBe('changed');
    const without = lines.filter(({ data }) => data !== cut);
    expect((await inspect(saved(without, 'cut-removed.jsonl'))).report.verdict).toBe('changed');
  });
});
