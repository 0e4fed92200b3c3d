import { clientKinds, connectMcp, connectSdk } from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';

const meta = 'dev.rialto/tool';
const skills = (...ids: string[]) => ids.map((id) => ({ id }));

describe('MCP: the list of tools', () => {
  let gateway: TestGateway;
  const stubs: StubAgent[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all(stubs.map((stub) => stub.close()));
  });

  const stub = async (options: StubAgentOptions) => {
    const agent = await startStubAgent(options);
    stubs.push(agent);
    return agent;
  };
  const register = (agent: StubAgent, token?: string, more: object = {}) =>
    gateway.call('POST', '/api/a2a/agents', { url: agent.url, ...more }, token);
  /** Creates an org with an admin token. A policy permits everything except administration. */
  const org = async (slug: string) => {
    const token = await gateway.tokenOf(slug, 'alice', 'admin');
    return { slug, token };
  };
  const list = async (token: string, query = ''): Promise<any[]> =>
    (await gateway.rpc('tools/list', {}, token, `/mcp${query}`)).result.tools;
  const names = async (token: string, query = '?names=canonical') =>
    (await list(token, query)).map(({ name }) => name as string);

  it('RE-01 RE-02 RE-04 a registered agent is one tool per skill, in every session at once', async () => {
    const { token } = await org('re01');
    const early = await connectMcp('sdk v1', `${gateway.url}/mcp?names=canonical`, token);
    expect((await early.listTools()).tools).toEqual([]);
    const agent = await stub({ name: 'Stub Data', skills: skills('one', 'two', 'three', 'four') });
    expect((await register(agent, token)).status).toBe(201);
    const expected = ['stub_data.four', 'stub_data.one', 'stub_data.three', 'stub_data.two'];
    expect((await early.listTools()).tools.map(({ name }) => name)).toEqual(expected);
    const fresh = await connectMcp('sdk v1', `${gateway.url}/mcp`, token);
    expect((await fresh.callTool({ name: 'stub_data.one' })).structuredContent).toEqual({ ok: true });
    await Promise.all([early.close(), fresh.close()]);
  });

  it('RE-03 RE-81 lists every agent of the org and no agent of another', async () => {
    const [a, b] = [await org('re03a'), await org('re03b')];
    for (const name of ['A', 'B', 'C', 'D', 'E'])
      await register(await stub({ name, skills: skills('x', 'y') }), a.token);
    await register(await stub({ name: 'Secret', skills: skills('x') }), b.token);
    expect(await names(a.token)).toHaveLength(10);
    expect(await names(a.token, '?names=both')).toHaveLength(20);
    expect((await names(a.token, '?names=both')).join()).not.toContain('secret');
    expect(await names(b.token)).toEqual(['secret.x']);
    const foreign = await gateway.rpc('tools/call', { name: 'secret.x', arguments: {} }, a.token);
    expect(foreign.error.code).toBe(-32602);
  });

  it('RE-05 RE-06 RE-07 names: canonical keeps the skill id, the alias is slugged', async () => {
    const { token } = await org('re05');
    const cases = [
      ['Linear (prod)', 'create-issue', 'linear_prod.create-issue', 'a2a_linear_prod_create_issue'],
      ['Vercel Ops', 'deploy', 'vercel_ops.deploy', 'a2a_vercel_ops_deploy'],
      ['code-reviewer', 'Review.PR', 'code_reviewer.Review.PR', 'a2a_code_reviewer_review_pr'],
    ] as const;
    for (const [name, skill, canonical, alias] of cases) {
      const { body } = await register(await stub({ name, skills: skills(skill) }), token);
      expect(body.skills[0]).toMatchObject({ id: skill, toolName: canonical, alias });
      const byAlias = await gateway.rpc('tools/call', { name: alias, arguments: {} }, token);
      expect(byAlias.result).toEqual(
        (await gateway.rpc('tools/call', { name: canonical, arguments: {} }, token)).result,
      );
    }
    expect(await names(token)).toEqual(cases.map(([, , canonical]) => canonical).sort());
    expect(await names(token, '?names=portable')).toEqual(
      [...cases].sort(([, , a], [, , b]) => (a < b ? -1 : 1)).map(([, , , alias]) => alias),
    );
  });

  it('RE-10 abuse 16 a second agent with the same slug is refused, the first one keeps its tools', async () => {
    const { token } = await org('re10');
    const [first, second] = [await stub({ name: 'a b' }), await stub({ name: 'a-b' })];
    expect((await register(first, token)).status).toBe(201);
    const refused = await register(second, token);
    expect([refused.status, refused.body.code]).toEqual([409, 'slug_taken']);
    expect((await register(second, token, { slug: 'other' })).status).toBe(201);
    await gateway.rpc('tools/call', { name: 'a_b.work', arguments: {} }, token);
    expect([first.requests.length, second.requests.length]).toEqual([1, 0]);
  });

  it('RE-10 skills with equal aliases are distinguished by a hash', async () => {
    const { token } = await org('re10b');
    const agent = await stub({ name: 'Twins', skills: skills('do-it', 'do.it', 'do_it') });
    await register(agent, token);
    const aliases = await names(token, '?names=portable');
    expect(new Set(aliases).size).toBe(3);
    for (const name of aliases) {
      const listed = (await list(token)).find((tool) => tool.name === name);
      await gateway.rpc('tools/call', { name, arguments: {} }, token);
      const sent = agent.requests.at(-1)!.json as any;
      expect(sent.params.message.metadata.skillId).toBe(listed._meta[meta].skillId);
    }
  });

  it('RE-10 a changed card takes no name from another agent', async () => {
    const { token } = await org('re10c');
    const older = await stub({ name: 'Vercel', skills: skills('other') });
    const newer = await stub({ name: 'Vercel Ops', skills: skills('deploy') });
    await register(older, token);
    await register(newer, token);
    (older.card as { skills: unknown[] }).skills.push(
      ...(newer.card as { skills: unknown[] }).skills.map((skill) => ({ ...(skill as object), id: 'ops_deploy' })),
    );
    expect((await gateway.call('POST', '/api/a2a/agents/vercel/refetch', undefined, token)).status).toBe(200);
    expect(await names(token, '?names=portable')).toHaveLength(3);
    await gateway.rpc('tools/call', { name: 'a2a_vercel_ops_deploy', arguments: {} }, token);
    expect([older.requests.length, newer.requests.length]).toEqual([0, 1]);
  });

  it('RE-11 RE-13 RE-14 D7 the schema unchanged, any object without one, a useful description, _meta', async () => {
    const { token } = await org('re11');
    const inputSchema = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { projectId: { $ref: '#/definitions/id' }, 'ünïcode ✓': { type: 'string', default: null } },
      definitions: { id: { type: 'string', minLength: 1, 'x-own': [1, 1e21] } },
      required: ['projectId'],
      additionalProperties: false,
    };
    const agent = await stub({ name: 'Vercel Ops', skills: [{ id: 'deploy', inputSchema }, { id: 'free' }] });
    await register(agent, token);
    const [deploy, free] = await list(token, '?names=canonical');
    expect(deploy.inputSchema).toEqual(inputSchema);
    expect(deploy.description).toContain('Invokes the deploy skill on remote A2A agent Vercel Ops');
    expect(deploy._meta[meta]).toEqual({ agent: 'vercel_ops', skillId: 'deploy', canonicalName: 'vercel_ops.deploy' });
    expect(free.inputSchema).toMatchObject({ type: 'object', additionalProperties: true });
    const [alias] = await list(token, '?names=portable');
    expect(alias._meta[meta]).toEqual({ ...deploy._meta[meta], aliasOf: 'vercel_ops.deploy' });
    const args = { anything: [1, { goes: null }], '✓': 'ü' };
    await gateway.rpc('tools/call', { name: 'vercel_ops.free', arguments: args }, token);
    expect((agent.requests.at(-1)!.json as any).params.message.parts).toEqual([{ data: args }]);
  });

  it.each(['v1', 'v03', 'v1-rest'] as const)(
    'K9 a skill without schema takes a message, which is sent as text: %s',
    async (dialect) => {
      const { token } = await org(`k9-${dialect}`);
      const skills = [{ id: 'chat' }, { id: 'rows', inputModes: ['application/json'] }];
      const card = dialect === 'v03' ? 'v03' : 'v1';
      const agent = await stub({ card, ...(dialect === 'v1-rest' && { speaks: [dialect] }), name: 'Chat', skills });
      await register(agent, token);
      const tools = await list(token, '?names=canonical');
      const [chat, rows] = ['chat.chat', 'chat.rows'].map((name) => tools.find((tool: any) => tool.name === name));
      expect(chat.inputSchema).toEqual({
        type: 'object',
        properties: { message: { type: 'string', description: expect.any(String) } },
        additionalProperties: true,
      });
      expect(rows.inputSchema).toEqual({ type: 'object', additionalProperties: true });
      const sent = async (name: string, args: object) => {
        await gateway.rpc('tools/call', { name, arguments: args }, token);
        const { json } = agent.requests.at(-1)! as any;
        const [part] = (json.params ?? json).message.parts;
        return part.text ?? part.data;
      };
      expect(await sent('chat.chat', { message: 'hello' })).toBe('hello');
      for (const args of [{ message: 'hello', tone: 'warm' }, { message: { text: 'hello' } }, { message: '' }])
        expect(await sent('chat.chat', args)).toEqual(args);
      expect(await sent('chat.rows', { message: 'hello' })).toEqual({ message: 'hello' });
    },
  );

  it('a skill with an unusable schema is not a tool, and one with a repairable schema is (C25, E20)', async () => {
    const { token } = await org('e20');
    const schemas: Record<string, object> = {
      empty: { type: 'object', properties: [] },
      list: { type: 'array' },
      outside: { type: 'object', properties: { a: { $ref: 'https://elsewhere.example/s.json' } } },
      unknown: { type: 'object', properties: { a: { type: 'any' } } },
    };
    const skills = Object.entries(schemas).map(([id, inputSchema]) => ({ id, inputSchema }));
    const agent = await stub({ name: 'Odd', skills: [{ id: 'good' }, ...skills] as never });
    const { body } = await register(agent, token);
    expect(body.skills.map(({ id, problem }: any) => [id, problem])).toEqual([
      ['good', null],
      ['empty', null],
      ['list', expect.stringContaining('type is not "object"')],
      ['outside', expect.stringContaining('https://elsewhere.example/s.json')],
      ['unknown', 'not a valid JSON Schema of its dialect'],
    ]);
    const shown = (await list(token, '?agents=odd&names=canonical')).map(({ name, inputSchema }) => [
      name,
      inputSchema,
    ]);
    expect(shown).toEqual([
      ['odd.empty', { type: 'object', properties: {} }],
      ['odd.good', expect.objectContaining({ type: 'object' })],
    ]);
    await gateway.rpc('tools/call', { name: 'odd.empty', arguments: { a: 1 } }, token);
    expect((agent.requests.at(-1)!.json as any).params.message.parts).toEqual([{ data: { a: 1 } }]);
  });

  it('D7 names of the list: the request, else the org, else the deployment; stable order', async () => {
    const { slug, token } = await org('d7names');
    await register(await stub({ name: 'Zed', skills: skills('b', 'a') }), token);
    await register(await stub({ name: 'Ann', skills: skills('B', 'a') }), token);
    const portable = ['a2a_ann_b', 'a2a_ann_a', 'a2a_zed_a', 'a2a_zed_b'];
    const canonical = ['ann.B', 'ann.a', 'zed.a', 'zed.b'];
    expect(await names(token, '')).toEqual(portable);
    expect(await names(token, '?names=both')).toEqual(canonical.flatMap((name, index) => [name, portable[index]]));
    expect(await names(token, '?names=canonical&agents=ann')).toEqual(['ann.B', 'ann.a']);
    expect(await names(token, '?names=canonical&agents=zed,ann,nobody')).toEqual(canonical);
    expect(await names(token, '?names=canonical&agents=')).toEqual([]);
    await gateway.call('PATCH', `/api/orgs/${slug}`, { toolNames: 'canonical' });
    expect(await names(token, '')).toEqual(canonical);
    expect(await names(token, '?names=portable')).toEqual(portable);
    const wrong = await gateway.call(
      'POST',
      '/mcp?names=short',
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      token,
    );
    expect([wrong.status, wrong.body.error.code]).toEqual([400, -32602]);
  });

  it('RE-43 RE-44 a refresh without a change leaves the list unchanged, a changed card does not', async () => {
    const { token } = await org('re44');
    const agent = await stub({ name: 'Grows', skills: skills('one') });
    const { body } = await register(agent, token);
    const before = await list(token);
    const lines = gateway.log.length;
    for (let run = 0; run < 2; run++)
      await gateway.call('POST', `/api/a2a/agents/${body.id}/refetch`, undefined, token);
    expect(await list(token)).toEqual(before);
    expect(gateway.log.slice(lines).filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
    (agent.card.skills as unknown[]).push({ id: 'two', name: 'Two', description: '', tags: [] });
    await gateway.call('POST', `/api/a2a/agents/${body.id}/refetch`, undefined, token);
    expect(await names(token)).toEqual(['grows.one', 'grows.two']);
    await gateway.call('DELETE', `/api/a2a/agents/${body.id}`, undefined, token);
    expect(await names(token)).toEqual([]);
  });

  it('RE-45 RE-46 an unreachable agent is not listed, a recovered one is', async () => {
    const { token } = await org('re45');
    const agent = await stub({ name: 'Shaky' });
    const { body } = await register(agent, token);
    await agent.down();
    const lost = await gateway.call('POST', `/api/a2a/agents/${body.id}/refetch`, undefined, token);
    expect(lost.body.health).toBe('unreachable');
    expect(await names(token)).toEqual([]);
    await agent.up();
    await gateway.call('POST', `/api/a2a/agents/${body.id}/refetch`, undefined, token);
    expect(await names(token)).toEqual(['shaky.work']);
  });

  it('RE-74 a skill that a policy hides from a caller is listed for others only', async () => {
    const { token } = await org('re74');
    const bob = await gateway.tokenOf('re74', 'bob');
    await register(await stub({ name: 'Hidden' }), token);
    await register(await stub({ name: 'Seen' }), token);
    const text = 'forbid(principal == User::"bob", action == Action::"a2a_discover", resource == A2AAgent::"hidden");';
    expect((await gateway.call('POST', '/api/policies', { name: 'hide', text }, token)).status).toBe(201);
    expect(await names(bob)).toEqual(['seen.work']);
    expect(await names(token)).toEqual(['hidden.work', 'seen.work']);
  });

  it.each(clientKinds)('both eras list and call the same tools: %s', async (kind) => {
    const { token } = await org(`kinds-${kind.replace(/\W/g, '')}`);
    await register(await stub({ name: 'Same', skills: skills('a', 'b') }), token);
    const client = await connectMcp(kind, `${gateway.url}/mcp?names=both`, token);
    const { tools } = await client.listTools();
    const raw = await list(token, '?names=both');
    expect(
      tools.map(({ name, description, inputSchema, _meta }) => ({ name, description, inputSchema, _meta })),
    ).toEqual(raw.map(({ name, description, inputSchema, _meta }) => ({ name, description, inputSchema, _meta })));
    const reply = await client.callTool({ name: 'same.a', arguments: {} });
    expect(reply.content).toEqual([{ type: 'text', text: '{"ok":true}' }]);
    expect(reply.structuredContent).toEqual({ ok: true });
    await client.close();
  });

  it('negotiates: auto reaches the newest revision, a pinned client gets it', async () => {
    const { token } = await org('eras');
    for (const mode of ['auto', 'pinned'] as const) {
      const { client, close } = await connectSdk(`${gateway.url}/mcp`, token, mode);
      expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
      expect(client.getServerVersion()).toMatchObject({ name: 'rialto', title: 'Rialto' });
      await close();
    }
  });
});

describe('MCP: the deployment’s tool names', () => {
  it('D7 RIALTO_MCP_TOOL_NAMES applies to orgs without their own setting', async () => {
    const gateway = await startTestGateway({ RIALTO_MCP_TOOL_NAMES: 'both' });
    const agent = await startStubAgent({ name: 'Solo' });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    const { result } = await gateway.rpc('tools/list');
    expect(result.tools.map(({ name }: { name: string }) => name)).toEqual(['solo.work', 'a2a_solo_work']);
    await gateway.close();
    await agent.close();
  });
});
