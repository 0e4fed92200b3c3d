import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

describe('tools for clients without MCP', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  const servers: TestUpstream[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent();
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url, slug: 'bee' });
    for (const id of ['alpha', 'cello', 'delta']) {
      const one = await TestUpstream.start();
      servers.push(one);
      one.add('who', () => ({ content: [{ type: 'text', text: id }] }), { description: `Returns its name: ${id}.` });
      await gateway.call('POST', '/api/mcp/servers', { id, url: one.url });
    }
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
    await Promise.all(servers.map((one) => one.close()));
  });

  const list = async (query = '', token?: string) =>
    (await gateway.call('GET', `/api/mcp/tools${query}`, undefined, token)).body;
  const names = async (query?: string, token?: string): Promise<string[]> =>
    (await list(query, token)).items.map(({ name }: { name: string }) => name);
  const call = (body: object, token?: string) => gateway.call('POST', '/api/mcp/tools/call', body, token);
  const who = async (strategy?: string): Promise<string> =>
    (await call({ name: 'who', strategy })).body.result.content[0].text;

  it('AE-49 are one list of skills and tools of MCP servers, in a stable order, with pages', async () => {
    const all = await names();
    expect(all).toEqual([...all].sort());
    expect(all).toEqual(expect.arrayContaining(['alpha__echo', 'cello__who', 'delta__who']));
    expect(all.some((name) => name.startsWith('bee.'))).toBe(true);
    const paged: string[] = [];
    let cursor = '';
    for (let page = 0; page < 20; page++) {
      const { items, nextCursor } = await list(`?limit=2${cursor}`);
      paged.push(...items.map(({ name }: { name: string }) => name));
      if (nextCursor === null) break;
      cursor = `&cursor=${encodeURIComponent(nextCursor)}`;
    }
    expect(paged).toEqual(all);
    expect((await gateway.call('GET', `/api/mcp/tools?q=x${cursor}`)).status).toBe(400);
  });

  it('AE-74 are found by any of their names, with all their servers', async () => {
    expect(await names('?name=who')).toEqual(['alpha__who', 'cello__who', 'delta__who']);
    expect(await names('?name=cello__who')).toEqual(['cello__who']);
    expect(await names('?name=who&server=delta')).toEqual(['delta__who']);
    expect(await names('?q=its%20name%3A%20CELLO')).toEqual(['cello__who']);
    expect(await names('?q=inputSchema')).toEqual([]);
    expect((await names('?agent=bee')).every((name) => name.startsWith('bee.'))).toBe(true);
    expect(await names('?name=nothing')).toEqual([]);
    expect((await list('?name=alpha__who')).items).toEqual([
      expect.objectContaining({
        server: 'alpha',
        agent: null,
        own: 'who',
        tool: expect.objectContaining({ name: 'alpha__who', inputSchema: expect.anything() }),
      }),
    ]);
  });

  it('AE-72 AE-73 a name of several servers is called at the first, in turn, or at the least loaded one', async () => {
    expect([await who(), await who('first')]).toEqual(['alpha', 'alpha']);
    const turns = [await who('round-robin'), await who('round-robin'), await who('round-robin')];
    expect([...turns].sort()).toEqual(['alpha', 'cello', 'delta']);
    const held: (() => void)[] = [];
    const hold = () => new Promise((done) => held.push(() => done({ content: [] })));
    for (const one of servers.slice(0, 2)) one.add('hold', hold);
    for (const id of ['alpha', 'cello']) await gateway.call('POST', `/api/mcp/servers/${id}/refresh`);
    const busy = ['alpha', 'cello'].map((id) => call({ name: `${id}__hold` }));
    while (held.length < 2) await new Promise((done) => setTimeout(done, 10));
    const three = async () => [await who('least-loaded'), await who('least-loaded'), await who('least-loaded')];
    // On a busy machine delta may be unreachable for a moment.
    await eventually(three, (answers) => answers.every((answer) => answer === 'delta'));
    for (const release of held) release();
    await Promise.all(busy);
    expect(await call({ name: 'who', strategy: 'luckiest' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_params' },
    });
  });

  it('AE-72 a server that came later takes no name from the first, under any id', async () => {
    const later = await TestUpstream.start();
    later.add('who', () => ({ content: [{ type: 'text', text: 'later' }] }));
    await gateway.call('POST', '/api/mcp/servers', { id: 'aaa', url: later.url });
    expect(await names('?name=who')).toEqual(['aaa__who', 'alpha__who', 'cello__who', 'delta__who']);
    expect(await who()).toBe('alpha');
    await gateway.call('DELETE', '/api/mcp/servers/aaa');
    await later.close();
  });

  it('AE-50 an unreachable server is skipped while another has the tool', async () => {
    await servers[0]!.down();
    expect((await call({ name: 'alpha__echo', arguments: { text: 'x' } })).status).not.toBe(200);
    expect(await who()).toBe('cello');
    await servers[0]!.listen();
  });

  it('AE-75 an unknown, hidden or forbidden name is refused, and another org sees nothing', async () => {
    expect(await call({ name: 'nothing' })).toMatchObject({ status: 404, body: { code: 'not_found' } });
    const other = await gateway.tokenOf('other', 'eve', 'admin');
    expect([await names('', other), (await call({ name: 'who' }, other)).status]).toEqual([[], 404]);
    const forbid = (action: string, what: string) =>
      gateway.call('POST', '/api/policies', {
        name: 'no',
        text: `forbid(principal, action == Action::"${action}", resource == ${what});`,
      });
    const { body } = await forbid('mcp_call', 'Tool::"cello__who"');
    expect(await call({ name: 'cello__who' })).toMatchObject({ status: 403, body: { code: 'denied' } });
    await gateway.call('DELETE', `/api/policies/${body.id}`);
    await forbid('mcp_discover', 'McpServer::"cello"');
    expect(await names('?name=who')).toEqual(['alpha__who', 'delta__who']);
    const answers = await Promise.all(Array.from({ length: 4 }, () => who('round-robin')));
    expect(answers).not.toContain('cello');
  });

  it('each caller has a rate limit per tool, over all processes, and gets the rest in a header', async () => {
    await gateway.call('PATCH', '/api/mcp/servers/delta', { callsPerMinute: 3 });
    const beside = await startTestGateway({}, gateway);
    try {
      // A minute that ends in between would allow three more calls.
      if (new Date().getSeconds() > 50) await new Promise((done) => setTimeout(done, 11_000));
      const ask = (at: TestGateway, token?: string) =>
        at.call('POST', '/api/mcp/tools/call', { name: 'delta__echo', arguments: { text: 'x' } }, token);
      const left = async (at: TestGateway) => (await ask(at)).headers.get('ratelimit-remaining');
      await beside.call('GET', '/api/mcp/servers/delta');
      expect([await left(gateway), await left(beside), await left(gateway)]).toEqual(['2', '1', '0']);
      const refused = await ask(beside);
      expect([refused.status, refused.body.code, refused.headers.get('ratelimit-limit')]).toEqual([
        429,
        'rate_limited',
        '3',
      ]);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      const params = { name: 'delta__echo', arguments: { text: 'x' } };
      const answer = await gateway.rpc('tools/call', params);
      expect(answer.error.data).toMatchObject({
        code: 'rate_limited',
        limit: 3,
        retryAfterSeconds: expect.any(Number),
      });
      expect((await ask(gateway, await gateway.tokenOf('default', 'bob'))).status).toBe(200);
      expect((await gateway.rpc('tools/call', { ...params, name: 'delta__who' })).result.content[0].text).toBe('delta');
    } finally {
      await beside.close();
      await gateway.call('PATCH', '/api/mcp/servers/delta', { callsPerMinute: null });
    }
    const limitOf = ({ headers }: { headers: Headers }) => headers.get('ratelimit-limit');
    const usual = limitOf(await gateway.call('GET', '/api/mcp/servers'));
    expect(limitOf(await call({ name: 'delta__echo', arguments: { text: 'x' } }))).toBe(usual);
  });

  it('a result with isError is an answer', async () => {
    servers[2]!.add('fail', () => ({ content: [{ type: 'text', text: 'no' }], isError: true }));
    await gateway.call('POST', '/api/mcp/servers/delta/refresh');
    expect(await call({ name: 'fail' })).toMatchObject({
      status: 200,
      body: { name: 'delta__fail', result: { isError: true } },
    });
  });
});
