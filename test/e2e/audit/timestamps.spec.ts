import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { AuditAnchor } from '../../../src/audit/anchors/audit-anchor.js';
import { AuditCheckpoints } from '../../../src/audit/audit-checkpoints.js';
import { AuditInspectionService, type AuditReport } from '../../../src/audit/audit-inspection.service.js';
import { AuditRetention } from '../../../src/audit/audit.retention.js';
import { lineOf } from '../../../src/audit/checkpoint.js';
import type { OrgId } from '../../../src/kernel/ids.js';
import { loadSettings } from '../../../src/platform/config/settings.js';
import { Metrics } from '../../../src/platform/telemetry/metrics.js';
import { tamper, tampered } from '../../support/gateway/audit-tables.js';
import { rialto } from '../../support/gateway/cli.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';
import { makeAuthority, type Authority, type Flaws } from '../../support/timestamps/authority.js';
import { startStubTsa, type StubTsa } from '../../support/timestamps/stub-tsa.js';

interface Line {
  kind: string;
  data: any;
  timestamp?: string;
}

describe('checkpoints of the audit with timestamps', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-timestamps-'));
  const caFile = join(folder, 'tsa.pem');
  let authority: Authority;
  let other: Authority;
  let tsa: StubTsa;
  let gateway: TestGateway;
  let env: Record<string, string>;
  let token: string;
  let globex: string;

  beforeAll(async () => {
    [authority, other] = await Promise.all([makeAuthority(), makeAuthority('Other')]);
    writeFileSync(caFile, other.ca + authority.ca);
    tsa = await startStubTsa(authority);
    // A process with the role `api` runs no sweeper, so no other process writes.
    env = {
      RIALTO_ROLE: 'api',
      RIALTO_AUDIT_RETENTION_DAYS: '30',
      RIALTO_AUDIT_TIMESTAMP_URL: `${tsa.url}?key=canary-of-a-tsa`,
    };
    gateway = await startTestGateway(env);
    token = await gateway.tokenOf('globex', 'gina', 'admin');
    [{ id: globex }] = (await gateway.sql(`select id from orgs where slug = 'globex'`)) as [{ id: string }];
  });
  afterAll(async () => {
    await gateway.close();
    await tsa.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Acts in the org of a token, `default` without one, and signs the end of its chain. */
  const actIn = async (of: string | undefined, name: string): Promise<void> => {
    expect((await gateway.call('POST', '/api/keys', { name, role: 'viewer' }, of)).status).toBe(201);
    await gateway.call('POST', '/api/audit/verify', undefined, of);
    await gateway.gateway.get(AuditCheckpoints).sweep();
  };
  const act = (name: string) => actIn(token, name);
  const deliver = (at = gateway) => at.gateway.get(AuditAnchor).sweep();
  const stamped = async (org = globex): Promise<number[]> =>
    (
      await gateway.sql<{ number: number }>(
        'select number::int from audit_timestamps where org_id = $1 order by number',
        [org],
      )
    ).map(({ number }) => number);
  const waiting = async (): Promise<number> => {
    const text = await gateway.gateway.get(Metrics).registry.metrics();
    return Number(/^rialto_due\{kind="anchor"\} (\d+)$/m.exec(text)![1]);
  };
  const exported = async (of = token): Promise<Line[]> => {
    const { body } = await gateway.call('GET', '/api/audit/export', undefined, of);
    return (body as string)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  };
  const saved = (lines: readonly Line[]): string => {
    const file = join(folder, 'audit.jsonl');
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return file;
  };
  const trusting = (...all: Authority[]) => all.map(({ ca }) => new X509Certificate(ca));
  const inspect = async (lines: readonly Line[], authorities?: X509Certificate[]) => {
    const report = await AuditInspectionService.reportOfExport(saved(lines), undefined, undefined, authorities);
    return { verdict: report.verdict, doubts: report.doubts, org: report.orgs[0]! };
  };
  const inspectDatabase = (authorities?: X509Certificate[]): Promise<AuditReport> => {
    const settings = { DATABASE_URL: gateway.database.url, A2A_SECRET: testSecret, RIALTO_DATA_DIR: gateway.dataDir };
    return AuditInspectionService.open(
      gateway.gateway.get(DataSource),
      loadSettings({ NODE_ENV: 'test', ...settings }),
    ).report(globex as OrgId, undefined, authorities);
  };
  /** Runs the command without any setting, so it has neither a database nor an encryption key. */
  const offline = (lines: readonly Line[], ...args: string[]) =>
    rialto(['audit', 'verify', saved(lines), ...args], {}, folder);

  it('stay due while the authority is down, and the newest gets its timestamp after a restart', async () => {
    tsa.script(503, 503, 503);
    for (const name of ['a', 'b', 'c']) {
      await act(name);
      await deliver();
    }
    expect(await stamped()).toEqual([]);
    expect(gateway.log.join('')).toContain('an anchor of the audit cannot be reached');
    await eventually(waiting, (count) => count >= 3);

    const later = await startTestGateway(env, gateway);
    await deliver(later);
    await later.close();
    expect(await stamped()).toEqual([3]);
    await eventually(waiting, (count) => count === 0);
    await act('d');
    await deliver();
    expect(await stamped()).toEqual([3, 4]);
    tsa.received.length = 0;
    await deliver();
    expect(tsa.received).toEqual([]);
  });

  it('are sent as a hash, and the address of the authority is not shown', async () => {
    await act('hashed');
    await deliver();
    const { body, type } = tsa.received.at(-1)!;
    expect([type, body.length < 100]).toEqual(['application/timestamp-query', true]);
    const shown = JSON.stringify([gateway.log, await gateway.call('GET', '/readyz', undefined, null)]);
    expect(shown).not.toContain('canary-of-a-tsa');
  });

  it.each<[string, Flaws | number]>([
    ['another text', { imprintOf: 'another text' }],
    ['another nonce', { nonce: Buffer.of(7) }],
    ['a wrong signature', { otherKey: true }],
    ['a refusal', { status: 2 }],
    ['a refusal by HTTP', 403],
  ])('get no timestamp from an answer with %s, and those of the other orgs do', async (what, flaws) => {
    const before = await stamped();
    await act(`with ${what}`);
    await actIn(undefined, `beside ${what}`);
    // Both orgs are due, in any order: the first answer is wrong, and only its org waits.
    tsa.received.length = 0;
    tsa.script(flaws);
    const all = async () => (await gateway.sql('select from audit_timestamps')).length;
    const count = await all();
    await deliver();
    expect([tsa.received.length, await all()]).toEqual([2, count + 1]);
    expect(gateway.log.join('')).toContain('an anchor refused a checkpoint');
    await deliver();
    expect([tsa.received.length, await all()]).toEqual([3, count + 2]);
    expect(await stamped()).toEqual([...before, expect.any(Number)]);
  });

  it('RE-86 verify offline from an export, with the certificate of the authority or without', async () => {
    const lines = await exported();
    await deliver(); // the export signed a checkpoint, which has no timestamp in its file
    const numbers = lines.filter(({ timestamp }) => timestamp !== undefined).map(({ data }) => data.number);
    expect(numbers).toEqual((await stamped()).slice(0, -1));
    const own = await offline(lines, '--json');
    expect([own.code, own.stderr]).toEqual([0, expect.stringContaining('the timestamps may be of any authority')]);
    const { timestamps } = JSON.parse(own.stdout).orgs[0];
    expect(timestamps).toEqual({
      checked: numbers.length,
      lastNumber: numbers.at(-1),
      lastAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      maxDelaySeconds: expect.any(Number),
      isAuthorityChecked: false,
    });
    const trusted = await offline(lines, '--tsa-ca', caFile);
    expect([trusted.code, trusted.stderr]).toEqual([0, expect.not.stringContaining('any authority')]);
    expect(trusted.stdout).toContain(`${numbers.length} up to ${numbers.at(-1)} at ${timestamps.lastAt}`);
    const wrong = await offline(lines, '--tsa-ca', saved([]));
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('--tsa-ca')]);
  });

  it('RE-86 are unverifiable when no given authority made them, or none is left', async () => {
    const lines = await exported();
    const foreign = await inspect(lines, trusting(other));
    expect(foreign).toMatchObject({ verdict: 'unverifiable', org: { timestamps: { checked: 0, lastNumber: null } } });
    expect(foreign.org.reason).toMatch(/^the timestamp of checkpoint \d+: no given authority made it$/);
    expect((await inspect(lines, trusting(other, authority))).verdict).toBe('intact');
    const without = lines.map(({ timestamp: _timestamp, ...line }) => line);
    expect((await inspect(without)).verdict).toBe('intact');
    expect(await inspect(without, trusting(authority))).toMatchObject({
      verdict: 'unverifiable',
      doubts: ['no checkpoint has a timestamp'],
    });
  });

  it('RE-86 are broken when a timestamp is that of another checkpoint, which is named', async () => {
    const lines = await exported();
    const withTimestamp = lines.filter(({ timestamp }) => timestamp !== undefined);
    const [first, second] = withTimestamp as [Line, Line];
    const swapped = lines.map((line) => (line === second ? { ...line, timestamp: first.timestamp! } : line));
    const { code, stdout, stderr } = await offline(swapped, '--json', '--tsa-ca', caFile);
    expect([code, stderr]).toEqual([2, expect.stringContaining('the audit was changed: globex')]);
    expect(JSON.parse(stdout).orgs[0]).toMatchObject({
      verdict: 'changed',
      brokenAt: second.data.sequence,
      reason: `the timestamp of checkpoint ${second.data.number}: it is no valid timestamp: it is for another text`,
    });
    await expect(inspect(lines.map((line) => ({ ...line, timestamp: 'no Base64' })))).rejects.toThrow('timestamp');
    const broken = lines.map((line) => (line === first ? { ...line, timestamp: 'AAAA' } : line));
    expect((await inspect(broken)).verdict).toBe('changed');
  });

  it('RE-86 show how late a timestamp is, also when the earlier ones were removed', async () => {
    const lines = await exported();
    const { data: first } = lines.find(({ kind }) => kind === 'checkpoint')!;
    const { data: last } = lines.findLast(({ timestamp }) => timestamp !== undefined)!;
    const stampedAgain = await authority.stamp(lineOf(last), { at: new Date(Date.parse(first.at) + 36_000_000) });
    const changed = lines.map(({ timestamp: _timestamp, ...line }) =>
      line.data === last ? { ...line, timestamp: stampedAgain.toString('base64') } : line,
    );
    const { verdict, org } = await inspect(changed, trusting(authority));
    expect([verdict, org.timestamps]).toEqual([
      'intact',
      expect.objectContaining({ checked: 1, lastNumber: last.number, maxDelaySeconds: 36_000 }),
    ]);
  });

  it('RE-86 are checked in the database too', async () => {
    const intact = await inspectDatabase(trusting(authority));
    expect(intact).toMatchObject({ verdict: 'intact', orgs: [{ timestamps: { isAuthorityChecked: true } }] });
    const last = (await stamped()).at(-1)!;
    const swap = `update audit_timestamps t set der = other.der from audit_timestamps other
      where t.org_id = '${globex}' and other.org_id = '${globex}' and t.number = ${last} and other.number < ${last}`;
    await tampered(gateway, [swap], async () => {
      const { verdict, orgs } = await inspectDatabase();
      expect([verdict, orgs[0]!.reason]).toEqual(['changed', expect.stringContaining(`of checkpoint ${last}: `)]);
    });
    for (const change of ['update audit_timestamps set der = der', 'delete from audit_timestamps'])
      await expect(gateway.sql(change)).rejects.toThrow('audit_timestamps is insert-only');
  });

  it.each([
    ['has another number', 'update audit_timestamps set number = 100000 where number = :last'],
    ['lost its checkpoint', 'delete from audit_checkpoints where number >= :last'],
  ])('RE-86 show a change in the database when one %s', async (_what, change) => {
    const last = (await stamped()).at(-1)!;
    await tampered(gateway, [`${change.replace(':last', String(last))} and org_id = '${globex}'`], async () => {
      const [kept] = await gateway.sql<{ sequence: number }>(
        'select max(sequence)::int as sequence from audit_checkpoints where org_id = $1',
        [globex],
      );
      const number = (await stamped()).at(-1)!;
      expect(await inspectDatabase(trusting(authority))).toMatchObject({
        verdict: 'changed',
        orgs: [{ reason: `the timestamp of checkpoint ${number} has no checkpoint`, brokenAt: kept!.sequence + 1 }],
      });
    });
  });

  it('make the gateway degraded when they have waited for long', async () => {
    const aged = `insert into audit_checkpoints (org_id, number, sequence, hash, kid, signature, at)
      values ('${globex}', 1000, 1, '', '', '', now() - interval '65 minutes')`;
    await tampered(gateway, [aged], async () => {
      const later = await startTestGateway(env, gateway);
      const { body } = await later.call('GET', '/readyz', undefined, null);
      expect(body.checks.anchor).toMatchObject({ status: 'degraded' });
      await later.close();
    });
  });

  it('are removed by retention with their timestamps, and not before they have one', async () => {
    await tamper(gateway, [
      `update audit_events e set at = past.at, event = jsonb_set(event, '{at}', to_jsonb(past.text)) from (
         select id, at - interval '40 days' as at,
           to_char((at - interval '40 days') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text
         from audit_events) past
       where past.id = e.id and e.org_id = '${globex}'`,
      ...['audit_chain', 'audit_checkpoints', 'audit_anchors', 'audit_timestamps'].map(
        (table) => `delete from ${table} where org_id = '${globex}'`,
      ),
      `insert into audit_pending (event_id, org_id) select id, org_id from audit_events where org_id = '${globex}'`,
    ]);
    await gateway.call('POST', '/api/audit/verify', undefined, token);
    await gateway.gateway.get(AuditCheckpoints).sweep();
    await act('young');
    const cuts = () => gateway.sql('select from audit_checkpoints where cut');
    await gateway.gateway.get(AuditRetention).sweep();
    expect(await cuts()).toEqual([]);
    await deliver();
    const [last] = await stamped();
    await act('younger');
    await deliver();
    expect(await stamped()).toEqual([last, last! + 1]);
    await gateway.gateway.get(AuditRetention).sweep();
    expect(await cuts()).toHaveLength(1);
    const kept = await gateway.sql<{ number: number }>(
      'select number::int from audit_checkpoints where org_id = $1 and not cut order by number',
      [globex],
    );
    expect(await stamped()).toEqual(kept.map(({ number }) => number));
    // A worker that is slower than retention stores the timestamp of a dropped checkpoint.
    const [late] = await gateway.sql(
      `insert into audit_timestamps select org_id, removed_to, '' from audit_checkpoints where cut returning *`,
    );
    expect(late).toMatchObject({ org_id: globex, number: String(last! - 1) });
    expect((await inspectDatabase(trusting(authority))).verdict).toBe('intact');
    await deliver();
    expect((await inspect(await exported(), trusting(authority))).verdict).toBe('intact');
  });
});
