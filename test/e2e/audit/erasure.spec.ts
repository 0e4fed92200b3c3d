import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuditInspectionService } from '../../../src/audit/audit-inspection.service.js';
import { AuditExportStore } from '../../../src/audit/export/audit-export.store.js';
import { tamper, tampered } from '../../support/gateway/audit-tables.js';
import { eventually } from '../../support/gateway/eventually.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const canary = 'bob-canary';

describe('the erasure of personal facts in the audit', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-erasure-'));
  let gateway: TestGateway;
  let beside: TestGateway;
  let upstream: TestUpstream;
  let bob: string;
  let fay: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    beside = await startTestGateway({}, gateway);
    upstream = await TestUpstream.start();
    upstream.add('pay', () => ({ content: [{ type: 'text', text: 'paid' }] }));
    await gateway.call('POST', '/api/mcp/servers', { id: 'bank', url: upstream.url });
    bob = await gateway.tokenOf('default', canary);
    await gateway.call('POST', '/api/orgs/default/members', { sub: 'fay', role: 'member', groups: ['finance'] });
    fay = await signToken({ sub: 'fay' });
  });
  afterAll(async () => {
    await beside.close();
    await gateway.close();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const pay = (args: object, token = bob, at = gateway) =>
    at.rpc('tools/call', { name: 'bank__pay', arguments: args }, token);
  const erase = (id: string, token?: string) =>
    gateway.call('POST', '/api/audit/erasures', { kind: 'user', id }, token);
  const verify = async () => (await gateway.call('POST', '/api/audit/verify')).body;
  const events = async (query = '') => (await gateway.call('GET', `/api/audit/events?limit=500${query}`)).body.items;
  const exported = async (): Promise<any[]> => {
    const { body } = await gateway.call('GET', '/api/audit/export');
    return body
      .trimEnd()
      .split('\n')
      .map((line: string) => JSON.parse(line));
  };
  const inspect = async (lines: readonly object[]) => {
    const file = join(folder, 'audit.jsonl');
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { orgs, verdict } = await AuditInspectionService.reportOfExport(file);
    const { brokenAt, reason } = orgs[0]!;
    return { verdict, brokenAt, ...(reason !== undefined && { reason }) };
  };
  const tables = async () =>
    JSON.stringify([
      await gateway.sql('select * from audit_events'),
      await gateway.sql('select * from audit_chain'),
      await gateway.sql('select * from audit_checkpoints'),
    ]);

  it('RE-86 the tables hold personal facts only sealed, and the API and an export show them', async () => {
    await pay({ to: 'ann' });
    await pay({ to: 'ann' }, bob, beside);
    const [last] = await events('&type=mcp_call');
    expect(last).toMatchObject({
      principal: { kind: 'user', id: canary, role: 'member' },
      args: { bytes: 12, sha256: expect.any(String) },
      personal: { opened: ['/args', '/principal/id'], erased: false },
    });
    expect(await tables()).not.toContain(canary);
    const lines = await exported();
    const line = lines.find(({ kind, data }) => kind === 'event' && data.event.id === last.id);
    expect(line.data.opened).toEqual([
      {
        key: line.data.event.sealed[0].key,
        salt: expect.any(String),
        facts: { principal: { id: canary }, args: last.args },
      },
    ]);
    expect(await inspect(lines)).toEqual({ verdict: 'intact', brokenAt: null });
    for (const change of [{ facts: { principal: { id: 'eve' } } }, { key: 'x' }, { salt: 'x' }]) {
      const opened = [{ ...line.data.opened[0], ...change }];
      const forged = lines.map((one) => (one === line ? { ...line, data: { ...line.data, opened } } : one));
      expect(await inspect(forged)).toMatchObject({ verdict: 'changed', brokenAt: line.data.sequence });
    }
  });

  it('RE-86 an erased caller is unreadable in database, API and export, and the chain still verifies', async () => {
    const { items: others } = (await gateway.call('GET', '/api/audit/decisions?limit=200')).body;
    const before = await events();
    const member = await erase(canary, bob);
    expect([member.status, (await events())[0].principal.id]).toEqual([403, canary]);
    const { status, body } = await erase(canary);
    expect([status, body.keys.length > 0]).toEqual([200, true]);

    expect(await tables()).not.toContain(canary);
    expect(await gateway.sql('select from audit_subject_keys where subject like $1', [`%${canary}`])).toEqual([]);
    for (const at of [gateway, beside]) {
      const after = (await at.call('GET', '/api/audit/events?limit=500')).body.items as any[];
      expect(JSON.stringify(after)).not.toContain(canary);
      const gone = after.filter(({ personal }) => personal?.erased);
      expect(gone.map(({ id }) => id)).toEqual([
        expect.any(String), // the refused erasure
        ...before.filter(({ principal }: any) => principal?.id === canary).map(({ id }: any) => id),
      ]);
      for (const { principal, args } of gone) expect([principal.id, args]).toEqual([undefined, undefined]);
    }
    const decisions = (await gateway.call('GET', '/api/audit/decisions?limit=200')).body.items as any[];
    const ofBob = others.find(({ principal }: any) => principal.id === canary);
    expect(decisions.find(({ id }) => id === ofBob.id)).toEqual({
      ...ofBob,
      principal: { ...ofBob.principal, id: null },
    });
    expect(await verify()).toMatchObject({ verdict: 'intact', firstSequence: 1, unsealed: 0 });
    const lines = await exported();
    expect(JSON.stringify(lines)).not.toContain(canary);
    expect(await inspect(lines)).toEqual({ verdict: 'intact', brokenAt: null });
    const forged = lines.map((one) =>
      one.data?.event?.id === ofBob.id
        ? { ...one, data: { ...one.data, event: { ...one.data.event, principal: { kind: 'user', role: 'admin' } } } }
        : one,
    );
    expect((await inspect(forged)).verdict).toBe('changed');

    const [recorded, act] = await events();
    const facts = [recorded, act].sort((one, other) => one.type.localeCompare(other.type));
    expect(facts).toMatchObject([
      { type: 'admin_write', verb: 'audit.export' },
      { type: 'audit.erased', keys: body.keys },
    ]);
  });

  it('RE-86 an erased caller that acts again gets a new key in every process', async () => {
    expect((await erase(canary)).status).toBe(404);
    await pay({ to: 'ann' });
    const shown = async (): Promise<number> => {
      await pay({ to: 'ann' }, bob, beside);
      const items = (await events('&type=mcp_call')) as any[];
      return items.filter(({ principal }) => principal.id === canary).length;
    };
    await eventually(shown, (count) => count >= 2);
    expect((await erase(canary)).status).toBe(200);
    expect(JSON.stringify(await events())).not.toContain(canary);
  });

  it('RE-86 the facts of a person who decided about a call are erased with that person', async () => {
    const text = '@ask("finance") forbid(principal, action == Action::"mcp_call", resource == Tool::"bank__pay");';
    const policy = await gateway.call('POST', '/api/policies', { name: 'ask', text });
    const ask = async (args: object): Promise<string> => (await pay(args)).error.data.approvalId;
    const answer = async (id: string, decision: string) =>
      (await gateway.call('POST', `/api/approvals/${id}`, { decision, reason: 'because-of-fay' }, fay)).status;
    expect(await answer(await ask({ to: 'ann' }), 'approve')).toBe(200);
    await pay({ to: 'ann' });
    expect(await answer(await ask({ to: 'eve' }), 'deny')).toBe(200);
    await pay({ to: 'eve' });
    await gateway.call('DELETE', `/api/policies/${policy.body.id}`);
    const [denied, , allowed] = await events('&type=mcp_call');
    expect(denied.error.message).toContain('refused by user:fay');
    expect(allowed.decision).toMatchObject({
      approval: { by: 'user:fay' },
      reason: expect.stringContaining('because-of-fay'),
    });
    expect(await tables()).not.toContain('because-of-fay');
    expect((await erase('fay')).status).toBe(200);
    const after = await events('&type=mcp_call');
    expect(JSON.stringify(after)).not.toMatch(/user:fay|because-of-fay/);
    expect(after[0]).toMatchObject({ principal: { id: canary }, personal: { erased: true }, outcome: 'denied' });
    expect((await gateway.call('GET', `/api/audit/decisions/${after[0].id}`)).body.reason).toBeNull();
    expect((await verify()).verdict).toBe('intact');
  });

  it('RE-86 an admin cannot erase its own acts, and another org keeps its facts', async () => {
    const [first, second] = [
      await gateway.tokenOf('acme', 'ann', 'admin'),
      await gateway.tokenOf('globex', 'ann', 'admin'),
    ];
    for (const token of [first, second]) await gateway.call('POST', '/api/keys', { name: 'k' }, token);
    expect((await erase('ann', first)).body.code).toBe('conflict');
    const other = await gateway.tokenOf('acme', 'amy', 'admin');
    expect((await erase('ann', other)).status).toBe(200);
    const shown = async (token: string) =>
      JSON.stringify((await gateway.call('GET', '/api/audit/events', undefined, token)).body);
    expect(await shown(first)).not.toContain('"ann"');
    expect(await shown(second)).toContain('"ann"');
  });

  it('RE-86 an export verifies when an erasure commits between its signature and its reading', async () => {
    for (const sub of ['eve', 'ian', 'joe']) await pay({ to: 'ann' }, await gateway.tokenOf('default', sub));
    const store = gateway.gateway.get(AuditExportStore);
    const read = store.inSnapshot.bind(store);
    const erasing = ['eve', 'ian'];
    const snapshots = jest.spyOn(store, 'inSnapshot').mockImplementation(async function* (org, work) {
      const id = erasing.shift();
      if (id !== undefined) expect((await erase(id)).status).toBe(200);
      yield* read(org, work);
    });
    try {
      const lines = await exported();
      expect(await inspect(lines)).toEqual({ verdict: 'intact', brokenAt: null });
      const shown = (id: string) => JSON.stringify(lines).includes(`"id":"${id}"`);
      expect(['eve', 'ian', 'joe'].filter(shown)).toEqual([...erasing, 'joe']);
    } finally {
      snapshots.mockRestore();
    }
  });

  it('RE-86 an event from before facts were sealed stays readable and verifies', async () => {
    const [org] = await gateway.sql(`select id from orgs where slug = 'default'`);
    const event = {
      id: '00000000-0000-7000-8000-000000000001',
      orgId: org.id,
      at: '2025-01-01T00:00:00.000Z',
      type: 'token.tenant_mismatch',
      sub: 'old-bob',
    };
    await gateway.sql(
      `with e as (
         insert into audit_events (id, org_id, at, type, event) values ($1, $2, $3, $4, $5)
       )
       insert into audit_pending (event_id, org_id) values ($1, $2)`,
      [event.id, event.orgId, event.at, event.type, JSON.stringify(event)],
    );
    expect((await verify()).verdict).toBe('intact');
    const [shown] = await events('&type=token.tenant_mismatch');
    expect(shown).toEqual({ ...event, chain: expect.any(Object) });
    expect(await inspect(await exported())).toEqual({ verdict: 'intact', brokenAt: null });
  });

  it('RE-86 a key that was exchanged in the database opens nothing, and is noticed', async () => {
    await tampered(
      gateway,
      [`update audit_subject_keys set sealed = (select sealed from audit_subject_keys order by id limit 1)`],
      async () => {
        expect(await verify()).toMatchObject({
          verdict: 'unverifiable',
          reason: expect.stringContaining('is missing or changed'),
        });
        const items = await events();
        expect(items.some(({ personal }: any) => personal && !personal.erased && personal.opened.length === 0)).toBe(
          true,
        );
      },
    );
  });

  it('RE-86 a key that was deleted without an erasure is noticed, in the database and in an export', async () => {
    const mia = await gateway.tokenOf('default', 'mia');
    await pay({ to: 'ann' }, mia);
    const lines = await exported();
    const line = lines.find(({ data }) => data.opened?.some(({ facts }: any) => facts.principal?.id === 'mia'));
    const { sequence, opened } = line.data;
    const what = `the key of personal facts of event ${sequence}`;
    const reason = `${what} is missing or changed, and no signed event records its erasure`;
    const [{ key }] = opened;
    await tampered(gateway, [`delete from audit_subject_keys where id = '${key}'`], async () => {
      expect(await verify()).toMatchObject({ valid: false, verdict: 'unverifiable', brokenAt: null, reason });
    });
    expect((await verify()).verdict).toBe('intact');
    const withheld = lines.map((one) =>
      one.data.opened
        ? { ...one, data: { ...one.data, opened: one.data.opened.filter((f: any) => f.key !== key) } }
        : one,
    );
    expect(await inspect(withheld)).toEqual({ verdict: 'unverifiable', brokenAt: null, reason });
  });

  it('RE-86 an erasure that was invented with the password of the database is not believed', async () => {
    const nia = await gateway.tokenOf('default', 'nia');
    await pay({ to: 'ann' }, nia);
    const lines = await exported();
    const line = lines.find(({ data }) => data.opened?.some(({ facts }: any) => facts.principal?.id === 'nia'));
    const [{ key }] = line.data.opened;
    const real = lines.find(({ data }) => data.event?.type === 'audit.erased').data.event;
    await tamper(gateway, [`delete from audit_subject_keys where id = '${key}'`]);
    const invent = async (id: string, more: object) =>
      gateway.sql(
        `with e as (
           insert into audit_events (id, org_id, at, type, event)
           values ($1, $2, '2025-01-01T00:00:00Z', 'audit.erased', $3)
         )
         insert into audit_pending (event_id, org_id) values ($1, $2)`,
        [id, real.orgId, JSON.stringify({ ...more, keys: [key] })],
      );
    await invent('00000000-0000-7000-8000-000000000002', {});
    await invent('00000000-0000-7000-8000-000000000003', { kid: real.kid, signature: real.signature });
    const doubt = {
      verdict: 'unverifiable',
      brokenAt: null,
      reason: expect.stringContaining(`of event ${line.data.sequence} is missing`),
    };
    expect(await verify()).toMatchObject(doubt);
    expect(await inspect(await exported())).toMatchObject(doubt);
  });
});
