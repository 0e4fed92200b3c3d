import { AuditCheckpoints } from '../../../src/audit/audit-checkpoints.js';
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../../src/kernel/canonical-json.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const events = '/api/audit/events';
interface Shown {
  id: string;
  type: string;
  at: string;
  sessionId?: string;
  personal?: { opened: string[]; erased: boolean };
  chain: { sequence: number; prevHash: string; hash: string };
}

/** Returns every event of the caller's org, page by page, newest first. */
async function allEvents(gateway: TestGateway, query = '', limit = 500, token?: string): Promise<Shown[]> {
  const found: Shown[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page = `${events}?limit=${limit}${query}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const { body } = await gateway.call('GET', page, undefined, token);
    found.push(...body.items);
    cursor = body.nextCursor as string | null;
  }
  return found;
}

/** Returns an event as it is stored and hashed: without the personal facts that were opened for the list. */
function storedOf({ chain: _chain, personal, ...event }: Shown): object {
  const stored = structuredClone(event);
  for (const pointer of personal?.opened ?? []) {
    const names = pointer.slice(1).split('/');
    const last = names.pop()!;
    const parent = names.reduce<any>((member, name) => member[name], stored);
    delete parent[last];
  }
  return stored;
}

/** Verifies the chain with the list of events alone. Throws at the first invalid event. */
function recompute(shown: readonly Shown[]): number {
  let prevHash = '0'.repeat(64);
  const inOrder = [...shown].sort((a, b) => a.chain.sequence - b.chain.sequence);
  for (const [index, event] of inOrder.entries()) {
    const { chain } = event;
    const hash = createHash('sha256')
      .update(canonicalJson(storedOf(event)) + prevHash)
      .digest('hex');
    expect(chain).toEqual({ sequence: index + 1, prevHash, hash });
    prevHash = hash;
  }
  return inOrder.length;
}

describe('the audit', () => {
  let one: TestGateway;
  let two: TestGateway;
  let agent: StubAgent;
  let globex: string;

  beforeAll(async () => {
    one = await startTestGateway();
    two = await startTestGateway({}, one);
    agent = await startStubAgent({ name: 'Audited' });
    await one.call('POST', '/api/a2a/agents', { url: agent.url });
    globex = await one.tokenOf('globex', 'gina', 'admin');
  });

  afterAll(async () => {
    await two.close();
    await one.close();
    await agent.close();
  });

  const verify = async (gateway = one, token?: string) =>
    (await gateway.call('POST', '/api/audit/verify', undefined, token)).body;
  const invoke = (gateway: TestGateway, args: object = {}) =>
    gateway.rpc('tools/call', { name: 'audited.work', arguments: args });

  it('RE-83 eight writers in two processes make one chain without gaps, which anyone can verify', async () => {
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        const gateway = writer % 2 === 0 ? one : two;
        for (let call = 0; call < 15; call++) {
          await invoke(gateway, { writer, call });
          if (call % 5 === 0) await verify(gateway);
        }
      }),
    );
    const verdict = await verify();
    expect(verdict).toMatchObject({ valid: true, brokenAt: null, firstSequence: 1, unsealed: 0 });
    const shown = await allEvents(two);
    expect(recompute(shown)).toBe(verdict.eventCount);
    expect(verdict.lastSequence).toBe(shown.length);
    expect(shown.filter(({ type }) => type === 'a2a_invoke')).toHaveLength(120);
  });

  it('X3.1 a chain is signed to its end, also without later events', async () => {
    await one.call('POST', '/api/keys', { name: 'last', role: 'viewer' }, globex);
    await verify(one, globex);
    await one.gateway.get(AuditCheckpoints).sweep();
    const unsigned = await one.sql(
      `select c.org_id
       from audit_chain c
       group by 1
       having max(c.sequence) > coalesce(
         (select max(p.sequence) from audit_checkpoints p where p.org_id = c.org_id), 0)`,
    );
    // Other orgs continue to write; this one is at rest.
    const [{ id }] = (await one.sql(`select id from orgs where slug = 'globex'`)) as [{ id: string }];
    expect(unsigned.map(({ org_id }) => org_id)).not.toContain(id);
    expect((await verify(one, globex)).valid).toBe(true);
  });

  it('stores a member of an event in its column or in its body, not in both', async () => {
    const twice = `
      select event
      from audit_events
      where event ?| '{id,orgId,at,type,sessionId}' or session_id = id::text`;
    expect(await one.sql(twice)).toEqual([]);
  });

  it('refuses a link of an earlier build, which hashes the body alone', async () => {
    const link = `insert into audit_chain (org_id, sequence, event_id, prev_hash, hash)
      values (gen_random_uuid(), 1, gen_random_uuid(), '', '')`;
    await expect(one.sql(link)).rejects.toMatchObject({ constraint: 'ck_audit_chain_whole' });
  });

  it('RE-41 each call has one event without arguments, allowed, denied or failed; reads have none', async () => {
    const before = (await allEvents(one)).length;
    await invoke(one, { text: 'canary-in-an-argument' });
    await one.rpc('tools/list');
    await one.call('GET', '/api/a2a/agents');
    const policy = await one.call('POST', '/api/policies', {
      name: 'no',
      text: 'forbid(principal, action == Action::"a2a_invoke", resource == Skill::"audited.work");',
    });
    await invoke(one, { text: 'canary-in-an-argument' });
    await one.call('DELETE', `/api/policies/${policy.body.id}`);
    const fresh = (await allEvents(one)).slice(0, -before) as any[];
    expect(fresh.map(({ verb, outcome }) => `${verb} ${outcome}`)).toEqual([
      'policy.delete completed',
      'audited.work denied',
      'policy.create completed',
      'audited.work completed',
    ]);
    expect(fresh[3].args).toEqual({
      bytes: '{"text":"canary-in-an-argument"}'.length,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const [dump] = await one.sql<{ text: string }>(`select string_agg(e::text, '') as text from audit_events e`);
    expect(dump!.text).not.toContain('canary-in-an-argument');
  });

  it('RE-87 returns pages with filters, in a stable order, and refuses invalid filters', async () => {
    await verify(); // so that every event is sealed and the lists below can be compared
    const all = await allEvents(one);
    expect((await one.call('GET', events)).body.items).toHaveLength(50);
    expect(await allEvents(one, '', 7)).toEqual(all);
    const calls = await allEvents(one, '&type=a2a_invoke', 50);
    expect(calls).toEqual(all.filter(({ type }) => type === 'a2a_invoke'));
    const [last, , earlier] = calls as [Shown, Shown, Shown];
    expect(await allEvents(one, `&sessionId=${encodeURIComponent(last.sessionId!)}`)).toEqual([last]);
    const between = await allEvents(one, `&from=${earlier.at}&to=${last.at}`);
    expect(between).toEqual(all.filter(({ at }) => at >= earlier.at && at < last.at));
    for (const query of [
      'limit=501',
      'limit=0',
      'from=yesterday',
      'to=0000-01-01T00:00:00Z',
      'orgId=x',
      'cursor=x',
      "type[]=a'",
      'limit=ten',
    ])
      expect((await one.call('GET', `${events}?${query}`)).status).toBe(400);
    expect((await one.call('GET', `${events}?limit=500`)).status).toBe(200);
    expect(await allEvents(one, `&type=${encodeURIComponent("' or 1=1 --")}`)).toEqual([]);
    const { nextCursor } = (await one.call('GET', `${events}?limit=1`)).body;
    const [position, mac] = nextCursor.split('.');
    const forged = Buffer.from(JSON.stringify(['2030-01-01T00:00:00Z', last.id])).toString('base64url');
    for (const cursor of [`${forged}.${mac}`, `${position}.${mac}x`, `${position}x.${mac}`, position, '.'])
      expect((await one.call('GET', `${events}?cursor=${encodeURIComponent(cursor)}`)).status).toBe(400);
    expect((await one.call('GET', `${events}?cursor=${nextCursor}`, undefined, globex)).status).toBe(400);
  });

  it('abuse 11: another org sees and verifies its own events only', async () => {
    const [mine] = await allEvents(one);
    const theirs = await allEvents(one, '', 500, globex);
    expect(JSON.stringify(theirs)).not.toContain(mine!.id);
    expect(await verify(one, globex)).toMatchObject({ valid: true, eventCount: theirs.length });
    expect((await one.call('GET', `/api/audit/decisions/${mine!.id}`, undefined, globex)).status).toBe(404);
  });

  it('rows can only be added', async () => {
    for (const table of ['audit_events', 'audit_chain', 'audit_checkpoints'])
      for (const statement of [`update ${table} set org_id = org_id`, `delete from ${table}`, `truncate ${table}`])
        await expect(one.sql(statement)).rejects.toMatchObject({ code: '42501' });
  });

  it('an act fails when its event cannot be written', async () => {
    await one.sql(
      `create function refuse_audit() returns trigger language plpgsql as $$ begin raise 'planted'; end $$`,
    );
    await one.sql('create trigger planted before insert on audit_events for each row execute function refuse_audit()');
    try {
      const refused = await one.call('POST', '/api/keys', { name: 'never' });
      expect(refused.status).toBeGreaterThanOrEqual(500);
      expect((await invoke(one)).error).toBeDefined();
    } finally {
      await one.sql('drop trigger planted on audit_events');
    }
    expect(await one.sql(`select * from api_keys where name = 'never'`)).toEqual([]);
    expect((await one.call('POST', '/api/keys', { name: 'now' })).status).toBe(201);
    expect(await verify()).toMatchObject({ valid: true });
  });
});

describe('RE-84 a changed audit is detected', () => {
  let gateway: TestGateway;
  let length: number;

  beforeEach(async () => {
    gateway = await startTestGateway();
    for (let index = 0; index < 6; index++) await gateway.call('POST', '/api/keys', { name: `key ${index}` });
    const verdict = (await gateway.call('POST', '/api/audit/verify')).body;
    expect(verdict).toMatchObject({ valid: true, firstSequence: 1, brokenAt: null });
    length = verdict.lastSequence;
    // The signature follows the commit of the signed events.
    await eventually(
      () => gateway.sql('select from audit_checkpoints'),
      (points) => points.length > 0,
    );
  });

  afterEach(() => gateway.close());

  const at = (sequence: number) => `(select event_id from audit_chain where sequence = ${sequence})`;
  const swap = (column: string) =>
    `update audit_chain set ${column} = case sequence when 3 then b.four else b.three end
     from (
       select max(${column}::text) filter (where sequence = 3) as three,
         max(${column}::text) filter (where sequence = 4) as four
       from audit_chain) b
     where sequence in (3, 4)`;

  it.each([
    ['an event edited', [`update audit_events set event = event || '{"verb":"x"}' where id = ${at(3)}`], 3],
    ['its columns edited', [`update audit_events set type = 'x' where id = ${at(4)}`], 4],
    ['its time edited', [`update audit_events set at = at - interval '1 day' where id = ${at(2)}`], 2],
    [
      'its time edited below a millisecond',
      [`update audit_events set at = at + interval '1 us' where id = ${at(2)}`],
      2,
    ],
    ['its session edited', [`update audit_events set session_id = 'x' where id = ${at(3)}`], 3],
    ['an event deleted', [`delete from audit_events where id = ${at(3)}`], 3],
    ['a link deleted', ['delete from audit_chain where sequence = 3'], 3],
    ['the first one deleted', [`delete from audit_chain where sequence = 1`], 1],
    ['hashes swapped', [swap('hash')], 3],
    ['a hash edited', [`update audit_chain set hash = repeat('a', 64) where sequence = 5`], 5],
    ['an event moved to another org', [`update audit_events set org_id = gen_random_uuid() where id = ${at(2)}`], 2],
  ])('(E18) %s', async (_what, statements, brokenAt) => {
    await tamper(statements);
    // The events before the break are counted.
    const sound = {
      eventCount: brokenAt - 1,
      firstSequence: brokenAt === 1 ? null : 1,
      lastSequence: brokenAt - 1 || null,
    };
    expect((await gateway.call('POST', '/api/audit/verify')).body).toMatchObject({ valid: false, brokenAt, ...sound });
  });

  it('(E18) an event deleted and the rest moved up, after the last event that a checkpoint confirms', async () => {
    await tamper([
      `delete from audit_events where id = ${at(3)}`,
      'delete from audit_chain where sequence = 3',
      'update audit_chain set sequence = sequence - 1 where sequence > 3',
    ]);
    const { body } = await gateway.call('POST', '/api/audit/verify');
    const reason = 'event 3, or one before it, was changed, removed or inserted';
    expect(body).toMatchObject({ valid: false, eventCount: 2, lastSequence: 2, reason });
    expect([1, 2, 3]).toContain(body.brokenAt);
  });

  it('an event inserted beside the chain, and the last link removed', async () => {
    const insert = `
      insert into audit_events (id, org_id, at, type, event)
      select gen_random_uuid(), org_id, at, type, event from audit_events limit 1`;
    await tamper([insert]);
    expect((await gateway.call('POST', '/api/audit/verify')).body).toMatchObject({
      valid: false,
      brokenAt: length + 1,
      unsealed: 1,
    });
  });

  it('a chain cut after a signed checkpoint, and one rebuilt from there', async () => {
    const [point] = await gateway.sql<{ sequence: string }>('select max(sequence) as sequence from audit_checkpoints');
    const cut = Number(point!.sequence);
    expect(cut).toBeGreaterThan(0);
    await tamper([
      `delete from audit_events where id in (select event_id from audit_chain where sequence >= ${cut})`,
      `delete from audit_chain where sequence >= ${cut}`,
    ]);
    expect((await gateway.call('POST', '/api/audit/verify')).body).toMatchObject({ valid: false, brokenAt: cut });
    for (let index = 0; index < 8; index++) await gateway.call('POST', '/api/keys', { name: `again ${index}` });
    const { body } = await gateway.call('POST', '/api/audit/verify');
    expect(body).toMatchObject({ valid: false, reason: `event ${cut}, or one before it, was changed` });
    expect(body.brokenAt).toBeLessThanOrEqual(cut);
  });

  it.each([
    ['its hash', `update audit_checkpoints set hash = repeat('b', 64)`],
    ['its signature', `update audit_checkpoints set signature = 'AAAA'`],
    ['its time', `update audit_checkpoints set at = at + interval '1 second'`],
    ['its number', `update audit_checkpoints set number = number + 1`],
    ['its predecessor', `update audit_checkpoints set prev_hash = repeat('b', 64)`],
    ['its second signature', `update audit_checkpoints set chain_signature = null`],
  ])('a checkpoint with %s changed', async (_what, statement) => {
    await tamper([statement]);
    expect((await gateway.call('POST', '/api/audit/verify')).body).toMatchObject({
      valid: false,
      brokenAt: expect.any(Number),
      reason: expect.stringContaining('checkpoint'),
    });
  });

  it('P5 a checkpoint with a missing key is not a change', async () => {
    // The next checkpoint contains the key of the line before, so only the key of the last checkpoint may be replaced.
    const lastKid = `
      update audit_checkpoints set kid = 'other'
      where number = (select max(number) from audit_checkpoints)`;
    await tamper([
      `do $$ begin
         perform pg_advisory_xact_lock(hashtextextended('audit:' || org_id::text, 0))
           from (select distinct org_id from audit_checkpoints) p;
         ${lastKid};
       end $$`,
    ]);
    expect((await gateway.call('POST', '/api/audit/verify')).body).toMatchObject({
      valid: false,
      verdict: 'unverifiable',
      brokenAt: null,
      reason: 'a checkpoint cannot be verified: the signing key other is missing',
    });
  });

  /** Changes the tables with the rights of their owner. */
  async function tamper(statements: readonly string[]): Promise<void> {
    const tables = ['audit_events', 'audit_chain', 'audit_checkpoints'];
    for (const table of tables) await gateway.sql(`alter table ${table} disable trigger all`);
    for (const statement of statements) await gateway.sql(statement);
    for (const table of tables) await gateway.sql(`alter table ${table} enable trigger all`);
  }
});
