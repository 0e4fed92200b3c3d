import { AgentStore } from '../../../src/registry/agents/agent.store.js';
import { RegistryService } from '../../../src/registry/registry.service.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';
import { hang, html, http as answer, huge, raw, redirect } from '../../support/stubs/stub-hostile.js';

const path = '/api/a2a/agents';

describe('the registry of registered agents', () => {
  let gateway: TestGateway;
  let globex: string;
  const stubs: StubAgent[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    globex = await gateway.tokenOf('globex', 'gina', 'admin');
  });

  afterEach(async () => {
    await Promise.all(stubs.splice(0).map((stub) => stub.close()));
    for (const token of [gateway.token, globex])
      for (let items; (items = (await gateway.call('GET', path, undefined, token)).body.items).length > 0;)
        for (const { id } of items) await gateway.call('DELETE', `${path}/${id}`, undefined, token);
  });

  afterAll(() => gateway.close());

  async function stub(options: StubAgentOptions = {}): Promise<StubAgent> {
    const started = await startStubAgent(options);
    stubs.push(started);
    return started;
  }

  const register = (body: object, token?: string) => gateway.call('POST', path, body, token);
  const toolNames = async (token?: string): Promise<string[]> =>
    ((await gateway.rpc('tools/list', {}, token, '/mcp?names=canonical')).result.tools as { name: string }[]).map(
      ({ name }) => name,
    );

  it.each(['v1', 'v03', 'hybrid', 'old'] as const)(
    'RE-53 RE-57 RE-60 registers a %s agent by its base URL, its card URL and its agent.json URL',
    async (card) => {
      const agent = await stub({ card, name: 'Vercel Ops', skills: [{ id: 'deploy' }, { id: 'create-issue' }] });
      for (const url of [agent.url, `${agent.url}/`, agent.cardUrl, `${agent.url}/.well-known/agent.json`]) {
        const { status, body } = await register({ url });
        expect(status).toBe(201);
        expect(body).toMatchObject({
          slug: 'vercel_ops',
          name: 'Vercel Ops',
          url: agent.url,
          cardUrl: agent.cardUrl,
          health: 'healthy',
          reachable: true,
          trustLevel: 'standard',
          credential: null,
          card: { name: 'Vercel Ops', version: '1.0.0', description: 'A scriptable test agent.' },
          skills: [
            { id: 'deploy', toolName: 'vercel_ops.deploy', alias: 'a2a_vercel_ops_deploy' },
            { id: 'create-issue', toolName: 'vercel_ops.create-issue', alias: 'a2a_vercel_ops_create_issue' },
          ],
        });
        for (const instant of ['lastFetchedAt', 'createdAt', 'updatedAt', 'lastSeenAt'])
          expect(new Date(body[instant]).getTime()).toBeGreaterThan(Date.now() - 60_000);
        expect(await toolNames()).toEqual(['vercel_ops.create-issue', 'vercel_ops.deploy']);
        expect((await gateway.call('GET', path)).body.items).toMatchObject([{ id: body.id }]);
        expect((await gateway.call('GET', `${path}/vercel_ops`)).body).toEqual(body);
        expect((await gateway.call('DELETE', `${path}/${body.id}`)).status).toBe(204);
        expect(await toolNames()).toEqual([]);
      }
    },
  );

  it('X2.5 ends a page of agents early when their cards are long, and the next page goes on there', async () => {
    const inputSchema = { type: 'object', description: 'x'.repeat(450_000) };
    for (const slug of ['a', 'b', 'c', 'd'])
      expect((await register({ url: (await stub({ skills: [{ id: 's', inputSchema }] })).url, slug })).status).toBe(
        201,
      );
    const pages: string[][] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body } = await gateway.call('GET', `${path}?limit=3${cursor && `&cursor=${cursor}`}`);
      pages.push(body.items.map(({ slug }: { slug: string }) => slug));
      cursor = body.nextCursor;
    }
    expect(pages).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  it('(G4) reads and parses only the agents that changed', async () => {
    const [one, two, three] = [await stub({ name: 'One' }), await stub({ name: 'Two' }), await stub({ name: 'Three' })];
    const { body: first } = await register({ url: one.url });
    const { body: second } = await register({ url: two.url });
    const org = first.orgId as string;
    const registry = gateway.gateway.get(RegistryService);
    const before = await registry.snapshot(org);
    const read = jest.spyOn(gateway.gateway.get(AgentStore), 'findByIds');

    const { body: third } = await register({ url: three.url });
    await gateway.call('PATCH', `${path}/${second.id}`, { trustLevel: 'trusted' });
    const after = await registry.snapshot(org);
    expect(new Set(read.mock.calls.flatMap(([ids]) => ids))).toEqual(new Set([third.id, second.id]));
    expect(after.agents.map(({ row }) => [row.name, row.trustLevel])).toEqual([
      ['One', 'standard'],
      ['Three', 'standard'],
      ['Two', 'trusted'],
    ]);
    expect(after.byId.get(first.id)!.row).toBe(before.byId.get(first.id)!.row);
    for (const id of [first.id, second.id]) expect(after.byId.get(id)!.card).toBe(before.byId.get(id)!.card);

    await gateway.call('DELETE', `${path}/${first.id}`);
    expect((await registry.snapshot(org)).agents.map(({ row }) => row.name)).toEqual(['Three', 'Two']);
    read.mockRestore();
  });

  it('RE-60 returns the card byte for byte as the agent sent it', async () => {
    const agent = await stub();
    const text =
      `{ "zeta":1e2,\n\t"name":"Odd \\u00e4", "url":"${agent.url}" , ` +
      `"skills":[{"id":"x","extra":{"b":1,"a":2}}],"protocolVersion":"0.3.0" }\n`;
    agent.set((call) => call.send(200, text, { 'content-type': 'application/json' }), 'card');
    const { body } = await register({ url: agent.url });
    const response = await fetch(`${gateway.url}${path}/${body.id}/card`, {
      headers: { authorization: `Bearer ${gateway.token}` },
    });
    expect(await response.text()).toBe(text);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  });

  it.each([
    ['Vercel Ops', 'vercel_ops'],
    ['code-reviewer', 'code_reviewer'],
    ['Linear (prod)', 'linear_prod'],
  ])('RE-05 RE-06 the slug of "%s" is %s', async (name, slug) => {
    const agent = await stub({ name, skills: [{ id: 'create-issue' }] });
    expect((await register({ url: agent.url })).body).toMatchObject({ slug });
    expect(await toolNames()).toEqual([`${slug}.create-issue`]);
  });

  it('RE-10 refuses a second name with the same slug, with a hint, and accepts another slug', async () => {
    const [first, second] = [await stub({ name: 'a b' }), await stub({ name: 'a-b' })];
    await register({ url: first.url });
    const refused = await register({ url: second.url });
    expect(refused.status).toBe(409);
    expect(refused.headers.get('content-type')).toMatch('application/problem+json');
    expect(refused.body).toMatchObject({ code: 'slug_taken', slug: 'a_b', hint: expect.stringContaining('slug') });
    expect((await register({ url: second.url, slug: 'a_c' })).body).toMatchObject({ slug: 'a_c', name: 'a-b' });
    expect((await register({ url: second.url, slug: 'a_d' })).body).toMatchObject({ status: 409, code: 'conflict' });
    await gateway.rpc('tools/call', { name: 'a_b.work', arguments: {} });
    expect([first.requests.length, second.requests.length]).toEqual([1, 0]);
  });

  it('RE-06 refuses invalid and reserved slugs', async () => {
    const { url } = await stub();
    for (const slug of ['A', 'a.b', 'a__b', '_a', 'a_', '', 'ä', 'tasks', 'agents', 'x'.repeat(64), 'a b'])
      expect((await register({ url, slug })).body).toMatchObject({ status: 400, violations: [{ field: 'slug' }] });
  });

  it.each([
    ['HTTP 500', answer(500, 'boom'), 500],
    ['HTTP 401', answer(401), 401],
    ['nowhere', answer(404, 'no'), 404],
    ['HTML', html(), 200],
    ['no JSON', raw('{'), 200],
    ['a list', raw('[]'), 200],
    ['nothing', raw('{}'), 200],
    ['a card without a name', raw('{"url":"http://127.0.0.1:1","skills":[],"protocolVersion":"0.3.0"}'), 200],
    ['a card without an interface', raw('{"name":"x","skills":[]}'), 200],
    ['a card nested 10,000 deep', raw(`{"name":"x","deep":${'['.repeat(10_000)}${']'.repeat(10_000)}}`), 200],
    ['a card larger than 1 MiB', huge(2_000_000), null],
    ['an endless redirect', redirect(302, '/.well-known/agent-card.json'), 302],
    ['a redirect to a file', redirect(302, 'file:///etc/passwd'), null],
  ])('RE-54 answers 400 with the upstream status and the reason for %s', async (_what, behaviour, upstreamStatus) => {
    const agent = await stub();
    agent.set(behaviour, 'card');
    const refused = await register({ url: agent.url });
    const allowedCodes = upstreamStatus === null ? ['card_invalid', 'url_not_allowed'] : ['card_invalid'];
    expect(allowedCodes).toContain(refused.body.code);
    if (refused.body.code === 'card_invalid') {
      expect(refused.status).toBe(400);
      expect(refused.body).toMatchObject({ upstreamStatus, detail: expect.stringMatching(/card/) });
    }
    expect((await gateway.call('GET', path)).body.items).toEqual([]);
  });

  it('RE-54 names the missing field of a card', async () => {
    const agent = await stub();
    delete agent.card.name;
    expect((await register({ url: agent.url })).body).toMatchObject({
      code: 'card_invalid',
      upstreamStatus: 200,
      violations: [{ field: '/name' }],
    });
  });

  it('AN-31 gives a hanging agent three seconds', async () => {
    const agent = await stub();
    agent.set(hang, 'card');
    expect((await register({ url: agent.url })).body).toMatchObject({ code: 'card_invalid', reason: 'remote_timeout' });
    await agent.idle();
  });

  it('RE-58 changes trust level, timeout and credential, and nothing else; a removal removes the tools', async () => {
    const agent = await stub();
    const { id, createdAt } = (await register({ url: agent.url })).body;
    const changed = await gateway.call('PATCH', `${path}/${id}`, {
      trustLevel: 'trusted',
      timeoutMs: 1_234,
      credential: { type: 'apiKey', header: 'X-Key', value: 'a-long-enough-secret-wxyz' },
    });
    expect(changed.body).toMatchObject({
      trustLevel: 'trusted',
      timeoutMs: 1_234,
      credential: { type: 'apiKey', hint: '…wxyz' },
      createdAt,
    });
    expect((await gateway.call('GET', `${path}/${id}`)).body).toEqual(changed.body);
    expect((await gateway.call('GET', `${path}?trustLevel=trusted`)).body.items).toHaveLength(1);
    expect((await gateway.call('GET', `${path}?trustLevel=untrusted`)).body.items).toHaveLength(0);
    const cleared = await gateway.call('PATCH', `${path}/${id}`, { timeoutMs: null, credential: null });
    expect(cleared.body).toMatchObject({ trustLevel: 'trusted', timeoutMs: null, credential: null });
    for (const body of [{}, { trustLevel: 'root' }, { timeoutMs: 1 }, { slug: 'x' }, { health: 'healthy' }])
      expect((await gateway.call('PATCH', `${path}/${id}`, body)).status).toBe(400);
    const ours = async () => (await toolNames()).filter((name: string) => name.includes(changed.body.slug));
    expect(await ours()).not.toEqual([]);
    expect((await gateway.call('DELETE', `${path}/${id}`)).status).toBe(204);
    expect(await ours()).toEqual([]);
  });

  it('RE-03 abuse 11: another org sees nothing of an agent, and its ids look unknown', async () => {
    const mine = await stub({ name: 'Mine' });
    const { id } = (await register({ url: mine.url })).body;
    expect((await gateway.call('GET', path, undefined, globex)).body).toEqual({ items: [], nextCursor: null });
    expect(await toolNames(globex)).toEqual([]);
    const strange = '00000000-0000-7000-8000-000000000000';
    const acts = [
      ['GET', ''],
      ['GET', '/card'],
      ['GET', '/changes'],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/refetch'],
    ] as const;
    for (const [method, rest] of acts) {
      const body = method === 'PATCH' ? { trustLevel: 'trusted' } : undefined;
      const [known, unknown] = await Promise.all(
        [id, strange, 'mine'].map((one) => gateway.call(method, `${path}/${one}${rest}`, body, globex)),
      );
      expect(known!.status).toBe(404);
      expect({ ...known!.body, requestId: '' }).toEqual({ ...unknown!.body, requestId: '' });
    }
    expect(await toolNames()).toEqual(['mine.work']);
    // The same agent and the same slug may exist in two orgs.
    expect((await register({ url: mine.url }, globex)).status).toBe(201);
    expect(await toolNames(globex)).toEqual(['mine.work']);
  });

  it('RE-03 RE-04 RE-01 five agents with two skills in one org, one in another', async () => {
    for (let index = 0; index < 5; index++)
      await register({ url: (await stub({ name: `agent ${index}`, skills: [{ id: 'a' }, { id: 'b' }] })).url });
    await register({ url: (await stub({ name: 'foreign' })).url }, globex);
    expect(await toolNames()).toHaveLength(10);
    expect(await toolNames(globex)).toEqual(['foreign.work']);
    const both = await gateway.rpc('tools/list', {}, undefined, '/mcp?names=both');
    expect(both.result.tools).toHaveLength(20);
  });

  it('RE-02 RE-43 RE-44 a session lists new agents without a restart, and a refresh changes nothing', async () => {
    const agent = await stub({ name: 'Fresh' });
    expect(await toolNames()).toEqual([]);
    await register({ url: agent.url });
    expect(await toolNames()).toEqual(['fresh.work']);
    const before = (await gateway.rpc('tools/list')).result;
    const errors = gateway.log.filter((line) => line.includes('"level":"error"')).length;
    await gateway.call('POST', `${path}/fresh/refetch`);
    await gateway.call('POST', `${path}/fresh/refetch`);
    expect((await gateway.rpc('tools/list')).result).toEqual(before);
    expect(gateway.log.filter((line) => line.includes('"level":"error"')).length).toBe(errors);
  });

  it('finds a change of two transactions when the first to begin commits last', async () => {
    const ids: string[] = [];
    for (const name of ['one', 'two']) ids.push((await register({ url: (await stub({ name })).url })).body.id);
    await gateway.sql(`update agent_cards set updated_at = now() - interval '1 minute' where id = $1`, [ids[0]]);
    await gateway.sql(`update agent_cards set updated_at = now() where id = $1`, [ids[1]]);
    await toolNames();
    // The state that another process leaves when its change is older than the newest one known here.
    await gateway.sql(
      `update agent_cards set health = 'unreachable', updated_at = now() - interval '30 seconds' where id = $1`,
      [ids[0]],
    );
    await eventually(
      () => toolNames(),
      ({ length }) => length === 1,
    );
    expect(await toolNames()).toEqual(['two.work']);
  });
});
