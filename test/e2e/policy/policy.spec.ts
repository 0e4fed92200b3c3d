import { randomBytes } from 'node:crypto';
import { A2AClientService } from '../../../src/a2a-client/a2a-client.service.js';
import type { CallContext } from '../../../src/kernel/call-context.js';
import type { RialtoError } from '../../../src/kernel/errors.js';
import type { OrgId } from '../../../src/kernel/ids.js';
import { RegistryService } from '../../../src/registry/registry.service.js';
import { eventually } from '../../support/gateway/eventually.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const path = '/api/policies';
const denied = -32003;

describe('policies of an org', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let alice: string;
  let mallory: string;
  let globex: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ name: 'Vercel Ops', skills: [{ id: 'deploy' }, { id: 'list' }] });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    [alice, mallory] = [await gateway.tokenOf('default', 'alice'), await gateway.tokenOf('default', 'mallory')];
    globex = await gateway.tokenOf('globex', 'gina', 'admin');
  });

  afterEach(async () => {
    agent.requests.length = 0;
    for (const { id, source } of (await gateway.call('GET', path)).body.items)
      if (source !== 'seed') await gateway.call('DELETE', `${path}/${id}`);
  });

  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });

  const store = (name: string, text: string, token?: string) => gateway.call('POST', path, { name, text }, token);
  const invoke = (name: string, token?: string, args: object = {}) =>
    gateway.rpc('tools/call', { name, arguments: args }, token);
  const codeOf = async (name: string, token?: string, args?: object): Promise<number | 'ok'> => {
    const answer = await invoke(name, token, args);
    return answer.error ? answer.error.code : 'ok';
  };

  it('a new development org has exactly one visible, editable permit', async () => {
    const { items } = (await gateway.call('GET', path)).body;
    expect(items).toMatchObject([{ name: 'development-default', source: 'seed', version: 1 }]);
    expect((await gateway.call('GET', path, undefined, globex)).body.items).toHaveLength(1);
    const [own] = (await gateway.call('GET', path, undefined, globex)).body.items;
    const edited = await gateway.call('PUT', `${path}/${own.id}`, { text: `${own.text}// mine\n` }, globex);
    expect(edited.body).toMatchObject({ id: own.id, version: 2, name: 'development-default' });
    expect(await codeOf('vercel_ops.list', alice)).toBe('ok');
  });

  it('RE-32 RE-35 RE-30 a forbid has priority over every permit, and no request is sent', async () => {
    await store(
      'no-deploys',
      'forbid(principal, action == Action::"a2a_invoke", resource == Skill::"vercel_ops.deploy");',
    );
    const refused = await invoke('vercel_ops.deploy', alice);
    expect(refused.error).toMatchObject({
      code: denied,
      message: expect.stringContaining('no-deploys'),
      data: { name: 'AuthorizationError', code: 'denied', policies: ['no-deploys'] },
    });
    expect(agent.requests).toHaveLength(0);
    expect(await codeOf('vercel_ops.list', alice)).toBe('ok');
    expect(agent.requests).toHaveLength(1);
  });

  it('abuse 16: a denied skill is denied under every name', async () => {
    await store(
      'no-deploys',
      'forbid(principal, action == Action::"a2a_invoke", resource == Skill::"vercel_ops.deploy");',
    );
    expect(await codeOf('a2a_vercel_ops_deploy', alice)).toBe(denied);
    const tricks = [
      'Vercel_Ops.deploy',
      'vercel_ops.deploy ',
      'vercel_ops．deploy',
      'VERCEL_OPS.DEPLOY',
      'vercel_ops.deploy\u0000',
      '',
      'x'.repeat(300),
    ];
    for (const name of tricks) expect([-32602, denied]).toContain(await codeOf(name, alice));
    expect(agent.requests).toHaveLength(0);
  });

  it('RE-33 abuse 15: a call without a matching permit is denied; a permit for all affects no other org', async () => {
    await gateway.call('POST', '/api/orgs', { slug: 'empty' });
    const admin = await gateway.tokenOf('empty', 'eve', 'admin');
    for (const { id } of (await gateway.call('GET', path, undefined, admin)).body.items)
      await gateway.call('DELETE', `${path}/${id}`, undefined, admin);
    const other = await startStubAgent({ name: 'Other' });
    await gateway.call('POST', '/api/a2a/agents', { url: other.url }, admin);
    expect((await invoke('other.work', admin)).error).toMatchObject({
      code: denied,
      message: expect.stringContaining('no permit matched'),
    });
    await store('all', 'permit(principal, action, resource);', admin);
    expect(await codeOf('other.work', admin)).toBe('ok');
    expect([-32602, denied]).toContain(await codeOf('vercel_ops.deploy', admin));
    await store('all', 'permit(principal, action, resource);', alice);
    expect(agent.requests).toHaveLength(0);
    expect(other.requests).toHaveLength(1);
    await other.close();
  });

  it('RE-34 decides by caller', async () => {
    const [seed] = (await gateway.call('GET', path)).body.items;
    await gateway.call('PUT', `${path}/${seed.id}`, {
      text: 'permit(principal == User::"alice", action == Action::"a2a_invoke", resource);',
    });
    expect(await codeOf('vercel_ops.deploy', alice)).toBe('ok');
    expect(await codeOf('vercel_ops.deploy', mallory)).toBe(denied);
    expect(agent.requests).toHaveLength(1);
    await gateway.call('PUT', `${path}/${seed.id}`, { text: seed.text });
  });

  it('decides by arguments, groups and depth', async () => {
    await store(
      'main',
      'forbid(principal, action == Action::"a2a_invoke", resource) ' +
        'when { context.input.hasTag("branch") && context.input.getTag("branch") == "main" };',
    );
    expect(await codeOf('vercel_ops.deploy', alice, { branch: 'main' })).toBe(denied);
    expect(await codeOf('vercel_ops.deploy', alice, { branch: 'next' })).toBe('ok');
    expect(await codeOf('vercel_ops.deploy', alice)).toBe('ok');
    await gateway.call('POST', '/api/orgs/default/members', { sub: 'alice', groups: ['ops'] });
    await store('ops', 'forbid(principal in Group::"ops", action == Action::"a2a_invoke", resource);');
    expect(await codeOf('vercel_ops.list', alice)).toBe(denied);
    expect(await codeOf('vercel_ops.list', mallory)).toBe('ok');
  });

  it('RE-74 a forbidden discovery hides an agent from every list, but its calls are allowed', async () => {
    await store(
      'hidden',
      'forbid(principal == User::"alice", action == Action::"a2a_discover", resource == A2AAgent::"vercel_ops");',
    );
    expect((await gateway.rpc('tools/list', {}, alice)).result.tools).toEqual([]);
    expect((await gateway.call('GET', '/api/a2a/agents', undefined, alice)).body.items).toEqual([]);
    expect((await gateway.call('GET', '/api/a2a/agents/vercel_ops', undefined, alice)).status).toBe(404);
    expect((await gateway.rpc('tools/list', {}, mallory)).result.tools).toHaveLength(2);
    expect(await codeOf('vercel_ops.list', alice)).toBe('ok');
  });

  it('RE-74 a forbidden cancel leaves the task running, and is audited', async () => {
    await store('keep', 'forbid(principal == User::"alice", action == Action::"a2a_cancel", resource);');
    const [row] = await gateway.sql<{ id: OrgId }>(`select id from orgs where slug = 'default'`);
    const { id } = row!;
    const client = gateway.gateway.get(A2AClientService);
    const target = (await gateway.gateway.get(RegistryService).snapshot(id)).bySlug.get('vercel_ops')!;
    const cancel = async (sub: string) => {
      const principal = { kind: 'user', id: sub, role: 'member', groups: [] } as const;
      const ctx: CallContext = { org: { id, slug: 'default' }, principal, surface: 'mcp', requestId: 'r', depth: 0 };
      const call = { agent: target, skillId: 'list', verb: 'vercel_ops.list', sessionId: 's', timeoutMs: 5_000 };
      return client.cancel(ctx, { ...call, taskId: 'task-1' }).then(
        () => 'done',
        (error: RialtoError) => error.code,
      );
    };
    expect(await cancel('alice')).toBe('denied');
    expect(agent.requests).toHaveLength(0);
    expect(await cancel('mallory')).not.toBe('denied');
    expect(agent.requests.length).toBeGreaterThan(0);
    expect(await codeOf('vercel_ops.list', alice)).toBe('ok');
    const { items } = (await gateway.call('GET', '/api/audit/events?type=a2a_cancel')).body;
    expect(items.map(({ outcome, principal }: any) => [principal.id, outcome])).toContainEqual(['alice', 'denied']);
  });

  it('RE-75 decides by the trust level of the called agent and of a calling agent', async () => {
    await store(
      'trusted-only',
      'forbid(principal, action == Action::"a2a_invoke", resource) unless { resource.agent.trustLevel == "trusted" };',
    );
    expect(await codeOf('vercel_ops.list', alice)).toBe(denied);
    await gateway.call('PATCH', '/api/a2a/agents/vercel_ops', { trustLevel: 'trusted' });
    expect(await codeOf('vercel_ops.list', alice)).toBe('ok');
    await gateway.call('PATCH', '/api/a2a/agents/vercel_ops', { trustLevel: 'untrusted' });
    expect(await codeOf('vercel_ops.list', alice)).toBe(denied);
    await gateway.call('PATCH', '/api/a2a/agents/vercel_ops', { trustLevel: 'standard' });
  });

  it('keeps every version, and a deleted policy no longer applies', async () => {
    const text = 'forbid(principal, action == Action::"a2a_invoke", resource);';
    const { id, version } = (await store('v', text)).body;
    expect(version).toBe(1);
    expect(await codeOf('vercel_ops.list', alice)).toBe(denied);
    const second = await gateway.call('PUT', `${path}/v`, {
      text: text.replace('resource', 'resource == Skill::"a.b"'),
    });
    expect(second.body).toMatchObject({ id, version: 2 });
    expect(await codeOf('vercel_ops.list', alice)).toBe('ok');
    const versions = (await gateway.call('GET', `${path}/${id}/versions`)).body.items;
    expect(versions).toMatchObject([
      { version: 2, createdBy: 'admin' },
      { version: 1, text },
    ]);
    expect((await gateway.call('DELETE', `${path}/${id}`)).status).toBe(204);
    expect((await gateway.call('GET', `${path}/${id}`)).status).toBe(404);
    expect((await store('development-default', text)).body).toMatchObject({ status: 409, code: 'conflict' });
    expect((await gateway.call('GET', `${path}/${id}`, undefined, globex)).status).toBe(404);
  });

  it.each([
    ['an unknown attribute', 'permit(principal, action == Action::"a2a_invoke", resource) when { resource.agnet };'],
    ['an unknown type', 'permit(principal == Userr::"a", action, resource);'],
    ['an unknown action', 'permit(principal, action == Action::"a2a_invok", resource);'],
    ['text that does not parse', 'permit(principal, action resource);'],
    [
      'a tag that may be missing',
      'forbid(principal, action == Action::"a2a_invoke", resource) when { context.input.getTag("x") == "y" };',
    ],
    ['65 KiB', `permit(principal, action, resource) when { "${'x'.repeat(70_000)}" == "" };`],
    ['endless nesting', `permit(principal, action, resource) when { ${'('.repeat(500)}true${')'.repeat(500)} };`],
    ['a reserved name', '@id("rialto:only-admins-write") permit(principal, action, resource);'],
  ])('abuse 14: %s is refused with its place', async (_what, text) => {
    const { status, body } = await store('bad', text);
    expect({ status, code: body.code }).toEqual({ status: 422, code: 'policy_invalid' });
    expect(body.violations[0]).toMatchObject({ field: 'text', line: expect.any(Number), column: expect.any(Number) });
    expect((await gateway.call('GET', path)).body.items).toHaveLength(1);
  });

  it('X2.3 policies that are too large together are refused, also in a test, and a deletion makes room', async () => {
    const heavy = (seed: number) => {
      const list = Array.from({ length: 2_000 }, (_, index) => index * 7 + seed).join(',');
      const condition = `[${list}].contains(context.depth + 100000)`;
      return `forbid(principal == User::"nobody", action, resource) when { ${condition} };`;
    };
    const ids: string[] = [];
    for (let index = 0; index < 2; index++) {
      const { status, body } = await store(`heavy${index}`, heavy(index));
      expect(status).toBe(201);
      ids.push(body.id);
    }
    const excess = { status: 422, body: { detail: 'the policies of an org may have at most 12000 words in total' } };
    expect(await store('heavy2', heavy(2))).toMatchObject(excess);
    const question = { principal: 'User::"x"', action: 'a2a_invoke', resource: 'Skill::"a.b"', text: heavy(2) };
    expect(await gateway.call('POST', `${path}/test`, question)).toMatchObject(excess);
    expect((await gateway.call('PUT', `${path}/${ids[0]}`, { text: heavy(9) })).status).toBe(200);
    expect((await gateway.call('DELETE', `${path}/${ids[0]}`)).status).toBe(204);
    const last = await store('heavy2', heavy(2));
    expect(last.status).toBe(201);
    for (const id of [...ids.slice(1), last.body.id])
      expect((await gateway.call('DELETE', `${path}/${id}`)).status).toBe(204);
  });

  it('abuse 14: an invalid planted row denies, with its reason, and 2 MB are too large', async () => {
    const [{ org_id }] = (await gateway.sql('select org_id from policies where name = $1 limit 1', [
      'development-default',
    ])) as [{ org_id: string }];
    for (const text of [
      'forbid(principal, action, resource) when { principal.nothing };',
      'permit(',
      'forbid(principal == Usr::"x", action, resource);',
    ]) {
      await gateway.sql(
        `insert into policies (id, org_id, name, text)
         values (gen_random_uuid(), (select id from orgs where slug = 'default'), 'planted', $1)`,
        [text],
      );
      await gateway.sql(`update orgs set policy_version = policy_version + 1 where slug = 'default'`);
      await eventually(
        () => codeOf('vercel_ops.list', alice),
        (code) => code === denied,
      );
      agent.requests.length = 0;
      expect((await invoke('vercel_ops.list', alice)).error.message).toContain('planted');
      expect(agent.requests).toHaveLength(0);
      await gateway.sql(`delete from policies where name = 'planted'`);
      await gateway.sql(`update orgs set policy_version = policy_version + 1 where slug = 'default'`);
      await eventually(
        () => codeOf('vercel_ops.list', alice),
        (code) => code === 'ok',
      );
    }
    expect(org_id).toBeDefined();
    expect((await store('large', 'x'.repeat(2_000_000))).status).toBe(413);
  });

  it('refuses a policy that would lock out its author', async () => {
    const lockOut = await store('oops', 'forbid(principal, action == Action::"admin_write", resource);');
    expect(lockOut.body).toMatchObject({
      status: 422,
      code: 'policy_invalid',
      hint: expect.stringContaining('exclude yourself'),
    });
    const others = await store(
      'others',
      'forbid(principal == User::"bob", action == Action::"admin_write", resource);',
    );
    expect(others.status).toBe(201);
  });

  it('RE-76 creates policies from templates; a missing input is named', async () => {
    const { items } = (await gateway.call('GET', `${path}/templates`)).body;
    expect(items.length).toBeGreaterThan(8);
    const template = { id: 'forbid-skill', inputs: { agent: 'vercel_ops', skill: 'deploy' } };
    expect((await gateway.call('POST', path, { name: 't', template })).body).toMatchObject({ template, version: 1 });
    expect(await codeOf('vercel_ops.deploy', alice)).toBe(denied);
    const missing = { id: 'forbid-skill', inputs: { agent: 'vercel_ops' } };
    const refused = (await gateway.call('POST', path, { name: 'u', template: missing })).body;
    expect(refused).toMatchObject({ status: 422, violations: [{ field: expect.stringContaining('skill') }] });
    const injected = {
      id: 'forbid-skill',
      inputs: { agent: 'a', skill: '"); permit(principal, action, resource); //' },
    };
    expect(
      (await gateway.call('POST', path, { name: 'i', template: injected })).body.text.match(/permit\(/g),
    ).toHaveLength(1);
    for (const body of [{ name: 'x' }, { name: 'x', text: 'permit(principal, action, resource);', template }])
      expect((await gateway.call('POST', path, body)).status).toBe(400);
    expect((await gateway.call('GET', `${path}/schema`)).body).toContain('entity');
  });

  it('RE-77 the decision log names the policies, by act and in lists', async () => {
    await store(
      'no-deploys',
      'forbid(principal, action == Action::"a2a_invoke", resource == Skill::"vercel_ops.deploy");',
    );
    const { decisionId } = (await invoke('vercel_ops.deploy', alice)).error.data;
    const decision = (await gateway.call('GET', `/api/audit/decisions/${decisionId}`)).body;
    expect(decision).toMatchObject({
      id: decisionId,
      decision: 'deny',
      policyIds: ['no-deploys'],
      principal: { kind: 'user', id: 'alice' },
      action: 'a2a_invoke',
      resource: { type: 'Skill', id: 'vercel_ops.deploy' },
      outcome: 'denied',
      policyVersion: expect.any(String),
    });
    const { items } = (await gateway.call('GET', '/api/audit/decisions?decision=deny&limit=1')).body;
    expect(items).toEqual([decision]);
    expect((await gateway.call('GET', `/api/audit/decisions/${decisionId}`, undefined, globex)).status).toBe(404);
  });
});

describe('policies of a production org', () => {
  it('do not exist at first: every call is denied until a permit is stored', async () => {
    const env = {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      RIALTO_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      RIALTO_A2A_SECRET_ADMINS: 'true',
    };
    const gateway = await startTestGateway({ ...env, RIALTO_OUTBOUND_ALLOW: '127.0.0.0/8' });
    try {
      await gateway.sql(
        `insert into members (org_id, sub, role) select id, 'root', 'admin' from orgs where slug = 'default'`,
      );
      const root = await signToken({ sub: 'root' });
      expect((await gateway.call('GET', path, undefined, root)).body).toEqual({ items: [], nextCursor: null });
      expect((await gateway.rpc('tools/call', { name: 'any.thing', arguments: {} }, root)).error).toMatchObject({
        code: denied,
        message: expect.stringContaining('no permit matched'),
      });
      const text = 'permit(principal, action == Action::"a2a_invoke", resource);';
      expect((await gateway.call('POST', path, { name: 'p', text }, root)).status).toBe(201);
      expect((await gateway.rpc('tools/call', { name: 'any.thing', arguments: {} }, root)).error.code).toBe(-32602);
      await gateway.call('POST', '/api/orgs', { slug: 'second' }, root);
      expect(await gateway.sql('select count(*)::int as count from policies')).toEqual([{ count: 1 }]);
      expect((await gateway.call('GET', '/docs-json', undefined, null)).status).toBe(401);
    } finally {
      await gateway.close();
    }
  });
});
