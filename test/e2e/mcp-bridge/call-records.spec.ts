import { EventEmitter2 } from '@nestjs/event-emitter';
import { VerbBus, type VerbEvent } from '../../../src/kernel/verb-bus.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data, failed, slow } from '../../support/stubs/stub-behaviours.js';
import { hang, html, http } from '../../support/stubs/stub-hostile.js';

const canonical = 'counted.deploy-it';
const alias = 'a2a_counted_deploy_it';

describe('MCP tools/call: events and records', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let agentId: string;
  let orgId: string;
  let events: VerbEvent[];
  let watched: [string, VerbEvent][];
  let leave: () => void;

  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ card: 'v03', name: 'Counted', skills: [{ id: 'deploy-it' }], costPerTask: 0.25 });
    const { body } = await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    [agentId, orgId] = [body.id, body.orgId];
    for (const name of ['verb.pre', 'verb.post', 'verb.error'])
      gateway.gateway
        .get(EventEmitter2)
        .on(name, (event: VerbEvent) => void (event.action === 'a2a_invoke' && watched.push([name, event])));
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });
  beforeEach(() => {
    [events, watched] = [[], []];
    agent.set(data({ ok: true }));
    agent.requests.length = 0;
    leave = bus().subscribe((event) => void (event.action === 'a2a_invoke' && events.push(event)));
  });
  afterEach(() => leave());

  const bus = () => gateway.gateway.get(VerbBus);
  const call = (name = canonical, args: unknown = { branch: 'main' }, token?: string) =>
    gateway.rpc('tools/call', { name, arguments: args }, token);
  const audited = async (sessionId: string) =>
    (await gateway.call('GET', `/api/audit/events?sessionId=${encodeURIComponent(sessionId)}`)).body.items as any[];
  const setTimeoutMs = (timeoutMs: number | null) => gateway.call('PATCH', `/api/a2a/agents/${agentId}`, { timeoutMs });
  /** Queries the database until the rows satisfy the condition. */
  const eventually = async <Row>(ask: () => Promise<Row[]>, enough: (rows: Row[]) => boolean): Promise<Row[]> => {
    for (let rows = await ask(); ; rows = await ask()) if (enough(rows)) return rows;
  };

  it('E8 RE-36 RE-38 RE-39 a success is pre-verb and post-verb, with every field', async () => {
    await call();
    expect(events.map(({ phase, outcome }) => [phase, outcome])).toEqual([
      ['pre-verb', undefined],
      ['post-verb', 'completed'],
    ]);
    const common = {
      verb: canonical,
      action: 'a2a_invoke',
      legacyAlias: alias,
      calledAs: canonical,
      orgId,
      agentCardId: agentId,
      agentUrl: agent.url,
      skillId: 'deploy-it',
      sessionId: expect.stringMatching(new RegExp(`^a2a-${agentId}-deploy-it-`)),
      args: { branch: 'main' },
      emittedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      actId: events[0]!.actId,
    };
    for (const event of events) expect(event).toMatchObject(common);
    expect(events[1]!.sessionId).toBe(events[0]!.sessionId);
    expect(events[1]!.durationMs).toBeGreaterThan(0);
    expect(events[1]!.error).toBeUndefined();
    expect((agent.requests[0]!.json as any).params.taskId).toBe(events[0]!.sessionId);
    expect(watched.map(([name]) => name)).toEqual(['verb.pre', 'verb.post']);
    expect(watched[0]![1]).toEqual(events[0]);
  });

  it('RE-09 a call by its alias is reported, decided and audited under the canonical name', async () => {
    await call(alias);
    for (const event of events) expect(event).toMatchObject({ verb: canonical, legacyAlias: alias, calledAs: alias });
    const [row] = await audited(events[0]!.sessionId);
    expect(row).toMatchObject({
      verb: canonical,
      legacyAlias: alias,
      calledAs: alias,
      resource: { type: 'Skill', id: canonical },
    });
    const decision = await gateway.call('GET', `/api/audit/decisions/${row.id}`);
    expect(decision.body).toMatchObject({ verb: canonical, legacyAlias: alias, calledAs: alias });
  });

  it.each<[string, () => void, string, number | null]>([
    ['a transport error', () => agent.set(http(500)), 'remote_transport', null],
    ['an invalid answer', () => agent.set(html()), 'remote_invalid_response', null],
    ['a failed task', () => agent.set(failed('broken')), 'remote_task_failed', null],
    ['a timeout', () => agent.set(hang), 'remote_timeout', 200],
  ])('E7 RE-37 RE-39 %s is post-verb failed and verb-error, once each', async (_, arrange, code, timeoutMs) => {
    arrange();
    await setTimeoutMs(timeoutMs);
    const { error } = await call();
    await setTimeoutMs(null);
    expect(events.map(({ phase, outcome }) => [phase, outcome])).toEqual([
      ['pre-verb', undefined],
      ['post-verb', 'failed'],
      ['verb-error', 'failed'],
    ]);
    expect(watched.map(([name]) => name)).toEqual(['verb.pre', 'verb.post', 'verb.error']);
    const { code: number, data, message } = error;
    expect(events[2]!.error).toEqual({ code: number, name: data.name, reason: code, message });
    const [row] = await audited(events[0]!.sessionId);
    expect(row).toMatchObject({ outcome: 'failed', error: { code } });
  });

  it('RE-31 an asynchronous pre-verb subscriber is awaited before the request is sent', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let reached: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => (reached = resolve));
    const order: string[] = [];
    const first = bus().subscribe(async ({ phase, verb }) => {
      if (phase !== 'pre-verb' || verb !== canonical) return;
      reached();
      await held;
      order.push('first');
    });
    const second = bus().subscribe(
      ({ phase, verb }) => void (phase === 'pre-verb' && verb === canonical && order.push('second')),
    );
    const reply = call();
    await asked;
    await call('nobody.knows'); // a whole round trip, in which the held call could have been sent
    expect([order, agent.requests]).toEqual([[], []]);
    release();
    expect((await reply).result.structuredContent).toEqual({ ok: true });
    first();
    second();
    expect(order).toEqual(['first', 'second']);
    expect(agent.requests).toHaveLength(1);
  });

  it('RE-31 RE-35 a subscriber that throws, or sets context.denied, denies', async () => {
    for (const refuse of [
      () => Promise.reject(new Error('not on Fridays')),
      (event: VerbEvent) => void (event.context.denied = 'not on Fridays'),
    ]) {
      const off = bus().subscribe((event) => (event.phase === 'pre-verb' ? refuse(event) : undefined));
      const { error } = await call();
      off();
      expect([error.code, error.data.name]).toEqual([-32003, 'AuthorizationError']);
    }
    expect(agent.requests).toEqual([]);
    expect(events.filter(({ phase }) => phase === 'post-verb').map(({ outcome }) => outcome)).toEqual([
      'denied',
      'denied',
    ]);
    expect(events.filter(({ phase }) => phase === 'verb-error')).toEqual([]);
  });

  it('RE-32 RE-33 RE-34 RE-35 RE-41 RE-77 permit, forbid, none: audited once; denied calls are not sent', async () => {
    const alice = await gateway.tokenOf('decided', 'alice', 'admin');
    const mallory = await gateway.tokenOf('decided', 'mallory');
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url, slug: 'counted' }, alice);
    const { body: stored } = await gateway.call('GET', '/api/policies', undefined, alice);
    for (const { id } of stored.items) await gateway.call('DELETE', `/api/policies/${id}`, undefined, alice);
    const save = async (name: string, text: string) =>
      expect((await gateway.call('POST', '/api/policies', { name, text }, alice)).status).toBe(201);

    const none = await call(canonical, {}, alice);
    expect([none.error.code, none.error.message]).toEqual([-32003, expect.stringContaining('no permit matched')]);
    await save('alice-only', 'permit(principal == User::"alice", action == Action::"a2a_invoke", resource);');
    expect((await call(canonical, {}, alice)).result.structuredContent).toEqual({ ok: true });
    expect((await call(canonical, {}, mallory)).error.code).toBe(-32003);
    await save('never', `forbid(principal, action == Action::"a2a_invoke", resource == Skill::"${canonical}");`);
    for (const name of [canonical, alias]) {
      const { error } = await call(name, {}, alice);
      expect([error.code, error.data.policies]).toEqual([-32003, ['never']]);
    }
    expect(agent.requests).toHaveLength(1);
    const { body: page } = await gateway.call('GET', '/api/audit/events?type=a2a_invoke', undefined, alice);
    const rows = page.items.reverse();
    expect(rows.map((event: any) => [event.principal.id, event.outcome, event.decision.policies])).toEqual([
      ['alice', 'denied', []],
      ['alice', 'completed', ['alice-only']],
      ['mallory', 'denied', []],
      ['alice', 'denied', ['never']],
      ['alice', 'denied', ['never']],
    ]);
    const last = await gateway.call('GET', `/api/audit/decisions/${rows[4].id}`, undefined, alice);
    expect(JSON.stringify(last.body)).toContain('never');
  });

  it('RE-40 RE-64 a call is active while it runs, completed or failed after', async () => {
    const instances = (status: string) =>
      gateway.sql('select * from a2a_task_instances where agent_id = $1 and status = $2', [agentId, status]);
    const before = { completed: (await instances('completed')).length, failed: (await instances('failed')).length };
    let release: () => void = () => undefined;
    agent.set(async (it) => {
      await new Promise<void>((resolve) => (release = resolve));
      return data({ ok: true })(it);
    });
    const reply = call();
    await agent.waitForRequests(1);
    const [row] = await eventually(
      () => instances('active'),
      (rows) => rows.length === 1,
    );
    expect(row).toMatchObject({
      verb: canonical,
      skill_id: 'deploy-it',
      work_type: 'explicit:deploy-it',
      org_id: orgId,
    });
    release();
    await reply;
    expect((await instances('active')).length).toBe(0);
    expect((await instances('completed')).length).toBe(before.completed + 1);
    agent.set(failed('no'));
    await call();
    const ended = await instances('failed');
    expect(ended.length).toBe(before.failed + 1);
    expect(ended.some(({ error_code: code }) => code === 'remote_task_failed')).toBe(true);
  });

  it('RE-42 RE-61 RE-72 outcomes and costs: the result of the agent, and its price', async () => {
    const outcomes = async () =>
      (await gateway.sql('select successes::int, failures::int from agent_outcomes where agent_id = $1', [agentId]))[0];
    const costs = () => gateway.sql('select * from cost_events where agent_id = $1', [agentId]);
    const [was, paid] = [await outcomes(), (await costs()).length];
    await call();
    await call(alias);
    agent.set(failed('no'));
    await call();
    expect(await outcomes()).toEqual({ successes: was.successes + 2, failures: was.failures + 1 });
    const rows = await costs();
    expect(rows.length).toBe(paid + 2);
    for (const { org_id: org, amount } of rows) expect([org, amount]).toEqual([orgId, 0.25]);
  });

  it('RE-41 an audit row holds sizes and hashes of the arguments, never their content', async () => {
    await call(canonical, { secret: 'hunter-2-in-arguments' });
    const [row, ...more] = await audited(events[0]!.sessionId);
    expect(more).toEqual([]);
    expect(row).toMatchObject({ outcome: 'completed', surface: 'mcp', decision: { allowed: true } });
    expect(row.args).toEqual({ bytes: expect.any(Number), sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    const everything = JSON.stringify([row, await gateway.sql('select event from audit_events'), gateway.log]);
    expect(everything).not.toContain('hunter-2-in-arguments');
  });

  it('RE-40 RE-41 fifty concurrent calls leave fifty of each', async () => {
    const count = async () => {
      const [row] = await gateway.sql(
        `select (select count(*)::int from a2a_task_instances where agent_id = $1 and status = 'completed') as done,
          (select count(*)::int from audit_events where type = 'a2a_invoke' and org_id = $2) as audited,
          (select successes::int from agent_outcomes where agent_id = $1) as successes`,
        [agentId, orgId],
      );
      return row;
    };
    const before = await count();
    agent.set(slow(20, data({ ok: true })));
    const errors = jest.spyOn(console, 'error');
    await Promise.all(Array.from({ length: 50 }, () => call()));
    expect(errors).not.toHaveBeenCalled(); // pg logs here names that PostgreSQL would truncate
    errors.mockRestore();
    const after = await count();
    for (const key of Object.keys(after)) expect([key, after[key] - before[key]]).toEqual([key, 50]);
  });
});
