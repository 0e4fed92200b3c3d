import { createHash } from 'node:crypto';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuditAnchor } from '../../../src/audit/anchors/audit-anchor.js';
import { AuditCheckpoints } from '../../../src/audit/audit-checkpoints.js';
import { AuditRetention } from '../../../src/audit/audit.retention.js';
import { wholeEvent } from '../../../src/audit/audit-event.store.js';
import { chainHash, genesisHash } from '../../../src/audit/chain.js';
import { SigningKeys } from '../../../src/platform/secrets/signing-keys.js';
import { statementBytes } from '../../../src/audit/checkpoint.js';
import { tamper, tampered } from '../../support/gateway/audit-tables.js';
import { rialto } from '../../support/gateway/cli.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';

const folder = mkdtempSync(join(tmpdir(), 'rialto-anchor-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the output of `rialto audit verify --json` and its exit code. */
async function inspect(gateway: TestGateway, ...args: string[]) {
  const env = {
    DATABASE_URL: gateway.database.url,
    A2A_SECRET: testSecret,
    RIALTO_DATA_DIR: gateway.dataDir,
  };
  const { code, stdout, stderr } = await rialto(['audit', 'verify', '--json', ...args], env);
  const report = stdout === '' ? undefined : JSON.parse(stdout);
  const org = (slug: string | null) => report.orgs.find((one: { slug: string | null }) => one.slug === slug);
  return { code, report, stderr, org };
}

/**
 * A process with the role `api` runs no sweeper. Each sweeper runs only when a test calls it, so no other process
 * writes.
 */
const api = { RIALTO_ROLE: 'api', RIALTO_AUDIT_RETENTION_DAYS: '30' };

async function act(gateway: TestGateway, name: string, token?: string): Promise<void> {
  expect((await gateway.call('POST', '/api/keys', { name, role: 'viewer' }, token)).status).toBe(201);
}

async function checkpoint(gateway: TestGateway, ...tokens: (string | undefined)[]): Promise<void> {
  for (const token of tokens) await gateway.call('POST', '/api/audit/verify', undefined, token);
  await gateway.gateway.get(AuditCheckpoints).sweep();
}

async function idOf(gateway: TestGateway, slug: string): Promise<string> {
  const [row] = await gateway.sql<{ id: string }>('select id from orgs where slug = $1', [slug]);
  return row!.id;
}

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').filter(Boolean);

/** Returns statements that delete the events of an org after a checkpoint, and the checkpoints after `last`. */
const cutBehind = (org: string, number: number, last = number): string[] => {
  const end = `(select sequence from audit_checkpoints where org_id = '${org}' and number = ${number})`;
  return [
    `delete from audit_events
     where id in (select event_id from audit_chain where org_id = '${org}' and sequence > ${end})`,
    `delete from audit_chain where org_id = '${org}' and sequence > ${end}`,
    `delete from audit_checkpoints where org_id = '${org}' and number > ${last}`,
  ];
};

describe('X3.1 events that are deleted together with their checkpoints', () => {
  const anchor = join(folder, 'attacks.jsonl');
  let gateway: TestGateway;
  let acme: string;
  let globex: string;
  let token: string;
  const verify = async (of?: string) => (await gateway.call('POST', '/api/audit/verify', undefined, of)).body;

  beforeAll(async () => {
    gateway = await startTestGateway({ ...api, RIALTO_AUDIT_ANCHOR_FILE: anchor });
    token = await gateway.tokenOf('acme', 'ann', 'admin');
    const other = await gateway.tokenOf('globex', 'gina', 'admin');
    [acme, globex] = [await idOf(gateway, 'acme'), await idOf(gateway, 'globex')];
    for (let round = 0; round < 3; round++) {
      for (const who of [token, other]) await act(gateway, `round ${round}`, who);
      await checkpoint(gateway, token, other);
    }
    await gateway.gateway.get(AuditAnchor).sweep();
  });
  afterAll(() => gateway.close());

  /**
   * Checks that the database alone shows no attack, while the anchor reveals it, and that the other org is not
   * affected.
   */
  const isDetected = async (statements: readonly string[], reason: RegExp): Promise<void> =>
    tampered(gateway, statements, async () => {
      const alone = await inspect(gateway);
      expect([alone.code, alone.report.verdict]).toEqual([0, 'intact']);
      const { code, report, stderr, org } = await inspect(gateway, '--against', anchor);
      const [attacked] = report.orgs.filter(({ orgId }: { orgId: string }) => orgId === acme);
      expect([code, report.verdict, attacked.verdict, attacked.valid]).toEqual([2, 'changed', 'changed', false]);
      expect(attacked.reason).toMatch(reason);
      expect(stderr).toContain('the audit was changed: ');
      expect(org('globex')).toMatchObject({
        verdict: 'intact',
        anchor: { checked: 3, lastNumber: 3, contradicted: 0 },
      });
    });

  it('are recorded by the anchor: every checkpoint, numbered, each with the hash of the line before', async () => {
    const lines = linesOf(anchor).filter((line) => JSON.parse(line).orgId === acme);
    expect(lines.map((line) => JSON.parse(line).number)).toEqual([1, 2, 3]);
    let prevHash = genesisHash;
    for (const line of lines) {
      expect(JSON.parse(line)).toMatchObject({ prevHash, kid: expect.any(String), signature: expect.any(String) });
      prevHash = createHash('sha256').update(line).digest('hex');
    }
    expect(await verify(token)).toMatchObject({ verdict: 'intact', lastCheckpoint: 3 });
    const { code, org } = await inspect(gateway, '--against', anchor);
    expect([code, org('acme').verdict]).toEqual([0, 'intact']);
    await gateway.gateway.get(AuditAnchor).sweep();
    expect(linesOf(anchor).filter((line) => JSON.parse(line).orgId === acme)).toEqual(lines);
  });

  it('are detected: the tail with its checkpoints', () =>
    isDetected(cutBehind(acme, 1), /^event \d+ was removed \(line \d+ of/));

  it('are detected: the newest checkpoints alone', () =>
    isDetected([`delete from audit_checkpoints where org_id = '${acme}' and number > 1`], /^checkpoint 2 was removed/));

  it('are detected: removed numbers, so that the checkpoints look like those of the version before', () =>
    isDetected([`update audit_checkpoints set number = 0 where org_id = '${acme}'`], /^checkpoint 1 was removed/));

  it('are detected: an edited event with new hashes and deleted checkpoints', async () => {
    const events = await gateway.sql<{ id: string; event: Record<string, unknown> }>(
      `select e.id, ${wholeEvent} as event
       from audit_chain c join audit_events e on e.id = c.event_id
       where c.org_id = $1
       order by c.sequence`,
      [acme],
    );
    let hash = genesisHash;
    const statements = events.flatMap(({ id, event }, index) => {
      const edited = index === 0 ? { ...event, outcome: 'denied' } : event;
      const prevHash = hash;
      hash = chainHash(edited, prevHash);
      return [
        `update audit_events set event = '${JSON.stringify(edited).replaceAll("'", "''")}' where id = '${id}'`,
        `update audit_chain set prev_hash = '${prevHash}', hash = '${hash}' where event_id = '${id}'`,
      ];
    });
    await isDetected(
      [...statements, `delete from audit_checkpoints where org_id = '${acme}'`],
      /^event \d+, or one before it, was changed/,
    );
  });

  it('are detected: everything of an org', () =>
    isDetected(
      ['audit_events', 'audit_chain', 'audit_checkpoints', 'audit_pending', 'audit_anchors'].map(
        (table) => `delete from ${table} where org_id = '${acme}'`,
      ),
      /^event \d+ was removed/,
    ));

  it('are detected when the gateway continued after the cut, with numbers that were used before', () =>
    tampered(gateway, cutBehind(acme, 1), async () => {
      for (let round = 0; round < 3; round++) {
        await act(gateway, `again ${round}`, token);
        await checkpoint(gateway, token);
      }
      expect(await verify(token)).toMatchObject({ verdict: 'intact' });
      const { code, org } = await inspect(gateway, '--org', 'acme', '--against', anchor);
      expect([code, org('acme').verdict]).toEqual([2, 'changed']);
      await gateway.sql(`delete from api_keys where name like 'again %'`);
    }));

  it.each([
    ['from the middle', 'number = 2', 'checkpoint 2 was removed'],
    ['at the beginning', 'number = 1', 'checkpoint 1 was removed'],
  ])('are detected by the database alone when a checkpoint is missing %s', (_where, which, reason) =>
    tampered(gateway, [`delete from audit_checkpoints where org_id = '${acme}' and ${which}`], async () => {
      expect(await verify(token)).toMatchObject({ verdict: 'changed', brokenAt: expect.any(Number), reason });
      const { code, org } = await inspect(gateway);
      expect([code, org('globex').verdict]).toEqual([2, 'intact']);
    }),
  );

  it('P5 a missing key is not a change: its public half, stored elsewhere, verifies everything', async () => {
    const jwks = join(folder, 'jwks.json');
    writeFileSync(jwks, JSON.stringify((await gateway.call('GET', '/.well-known/jwks.json', undefined, null)).body));
    await tampered(gateway, ['delete from signing_keys'], async () => {
      const without = await inspect(gateway, '--against', anchor);
      expect([without.code, without.report.verdict]).toEqual([1, 'unverifiable']);
      expect(without.stderr).toMatch(/is signed by \S+, a key that this deployment does not have/);
      expect(without.stderr).toContain('the audit cannot be verified');
      const { code, report } = await inspect(gateway, '--against', anchor, '--jwks', jwks);
      expect([code, report.verdict]).toEqual([0, 'intact']);
    });
    await tampered(gateway, ['delete from signing_keys', ...cutBehind(acme, 1)], async () => {
      const { code, org } = await inspect(gateway, '--against', anchor, '--jwks', jwks);
      expect([code, org('acme').verdict]).toEqual([2, 'changed']);
    });
  });

  it('P5 anchor lines that prove nothing are distinguished from a change', async () => {
    const file = join(folder, 'spoilt.jsonl');
    const [first, ...others] = linesOf(anchor).map((line) => JSON.parse(line));
    const write = (...lines: unknown[]): void =>
      writeFileSync(file, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
    const outcome = async (): Promise<unknown[]> => {
      const { code, report, stderr } = await inspect(gateway, '--against', file);
      return [code, report.verdict, stderr];
    };
    write({ ...first, hash: 'f'.repeat(64) }, ...others);
    expect(await outcome()).toEqual([
      1,
      'unverifiable',
      expect.stringContaining('line 1 has a signature that is not that'),
    ]);
    write({ ...first, kid: 'kforeign' }, ...others);
    expect(await outcome()).toEqual([1, 'unverifiable', expect.stringContaining('line 1 is signed by kforeign')]);
    write('');
    expect(await outcome()).toEqual([1, 'unverifiable', expect.stringContaining('the anchor has no checkpoint')]);
    // An anchor that accepts each line at least once may hold a broken line, duplicates, and any order.
    write(JSON.stringify(first).slice(0, 40), ...others.reverse(), first, first);
    expect(await outcome()).toEqual([
      0,
      'intact',
      expect.stringContaining('1 lines of the anchor are not checkpoints'),
    ]);
    expect(await inspect(gateway, '--against', join(folder, 'absent'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot be read: ENOENT'),
    });
    expect((await inspect(gateway, '--org', 'nowhere')).code).toBe(1);
  });

  it('two processes that sign at the same time produce one sequence of numbers', async () => {
    const beside = await startTestGateway(api, gateway);
    const both = [gateway, beside].map((one) => one.gateway.get(AuditCheckpoints));
    for (let round = 0; round < 5; round++) {
      await act(gateway, `at once ${round}`, token);
      await gateway.call('POST', '/api/audit/verify', undefined, token);
      await Promise.all(both.map((checkpoints) => checkpoints.sweep()));
    }
    await beside.close();
    const numbers = await gateway.sql('select number::int from audit_checkpoints where org_id = $1 order by 1', [acme]);
    expect(numbers.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await verify(token)).toMatchObject({ verdict: 'intact', lastCheckpoint: 8 });
  });

  it('a broken line is ended before the next one', async () => {
    appendFileSync(anchor, '{"broken":');
    await gateway.gateway.get(AuditAnchor).sweep();
    const { code, org, report } = await inspect(gateway, '--against', anchor);
    expect([code, report.unreadable, org('acme').anchor.lastNumber]).toEqual([0, 1, 8]);
    expect(globex).toBeDefined();
  });
});

describe('retention of anchored events', () => {
  const anchor = join(folder, 'retention.jsonl');
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway({ ...api, RIALTO_AUDIT_ANCHOR_FILE: anchor });
  });
  afterAll(() => gateway.close());
  const verify = async () => (await gateway.call('POST', '/api/audit/verify')).body;
  const retain = () => gateway.gateway.get(AuditRetention).sweep();
  /** Creates events that are 40 days old: they are moved into the past before they are sealed. */
  const actLongAgo = async (name: string): Promise<void> => {
    await act(gateway, name);
    await tamper(gateway, [
      `update audit_events e set at = past.at, event = jsonb_set(event, '{at}', to_jsonb(past.text)) from (
         select id, at - interval '40 days' as at,
           to_char((at - interval '40 days') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text
         from audit_events) past
       where past.id = e.id and exists (select from audit_pending p where p.event_id = e.id)`,
    ]);
    await checkpoint(gateway, undefined);
  };

  it('is not an attack; it waits for the anchor, and signs which events it deleted', async () => {
    for (const name of ['a', 'b', 'c']) await actLongAgo(name);
    await act(gateway, 'kept');
    await checkpoint(gateway, undefined);
    await retain();
    expect(await verify()).toMatchObject({ verdict: 'intact', firstSequence: 1, lastCheckpoint: 4 });

    await gateway.gateway.get(AuditAnchor).sweep();
    await retain();
    const after = await verify();
    expect(after).toMatchObject({ verdict: 'intact', lastCheckpoint: 5 });
    expect(after.firstSequence).toBeGreaterThan(3);
    await act(gateway, 'later');
    await checkpoint(gateway, undefined);
    await gateway.gateway.get(AuditAnchor).sweep();
    expect(JSON.parse(linesOf(anchor)[4]!)).toMatchObject({ number: 5, cut: true, removedTo: 3 });
    const { code, org } = await inspect(gateway, '--against', anchor);
    expect([code, org('default').anchor.checked]).toEqual([0, 6]);
  });

  it('hides no attack: other deleted events, or a changed retention record', async () => {
    for (const [which, reason] of [
      ['number = 4', 'checkpoint 4 was removed'],
      ['cut', 'checkpoint 5 was removed'],
    ])
      await tampered(gateway, [`delete from audit_checkpoints where ${which}`], async () => {
        const { code, org } = await inspect(gateway, '--against', anchor);
        expect([code, org('default').verdict]).toEqual([2, 'changed']);
        expect([org('default').reason, which]).toEqual([
          which === 'cut' ? 'event 1 was changed, removed or inserted' : reason,
          which,
        ]);
      });
    await tampered(gateway, cutBehind(await idOf(gateway, 'default'), 4, 5), async () => {
      expect((await inspect(gateway)).code).toBe(0);
      expect((await inspect(gateway, '--against', anchor)).code).toBe(2);
    });
  });

  it('keeps events with a forged old time', async () => {
    const before = await verify();
    await tampered(gateway, [`update audit_events set at = at - interval '90 days'`], async () => {
      await retain();
      expect(await verify()).toMatchObject({ verdict: 'changed', firstSequence: null });
      expect(await gateway.sql('select from audit_events')).toHaveLength(before.eventCount);
      expect(gateway.log.join('')).toContain('retention drops nothing of an audit that does not verify');
    });
  });

  it('a checkpoint of the version before, without a number, continues the count', async () => {
    const orgId = await idOf(gateway, 'default');
    const [head] = await gateway.sql('select sequence::int, hash from audit_chain order by sequence limit 1');
    const at = '2025-01-01T00:00:00.000Z';
    const { kid, sign } = await gateway.gateway.get(SigningKeys).current();
    const signatureOf = (hash: string): string => sign(statementBytes({ orgId, sequence: head.sequence, hash, at }));
    const insert = (hash: string): string =>
      `insert into audit_checkpoints (org_id, sequence, hash, at, kid, signature)
       values ('${orgId}', ${head.sequence}, '${hash}', '${at}', '${kid}', '${signatureOf(hash)}')`;
    await tampered(gateway, [insert(head.hash)], async () =>
      expect(await verify()).toMatchObject({ verdict: 'intact' }),
    );
    await tampered(gateway, [insert('e'.repeat(64))], async () =>
      expect(await verify()).toMatchObject({
        verdict: 'changed',
        reason: `event ${head.sequence}, or one before it, was changed`,
      }),
    );
  });
});
