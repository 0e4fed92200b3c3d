import { randomUUID } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const script = join(process.cwd(), 'test', 'support', 'stubs', 'stdio-upstream.mjs');

describe('MCP servers that the operator has declared', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-mcp-config-'));
  const ours = join(folder, 'rialto.config.json');
  const usual = join(folder, 'mcp.config.json');
  const web: TestUpstream[] = [];
  const lives: TestGateway[] = [];
  let gateway: TestGateway | undefined;
  afterEach(async () => {
    for (const life of lives.splice(0).reverse()) await life.close();
    gateway = undefined;
    await Promise.all(web.splice(0).map((one) => one.close()));
  });

  /** Starts a gateway with these files; an existing gateway is replaced by a new one on the same database. */
  async function start(files: { ours?: object; usual?: object; more?: object }, env: Record<string, string> = {}) {
    writeFileSync(ours, JSON.stringify({ mcpServers: files.ours ?? {}, ...files.more }));
    writeFileSync(usual, JSON.stringify({ mcpServers: files.usual ?? {} }));
    const before = gateway;
    await before?.gateway.close();
    gateway = await startTestGateway({ RIALTO_CONFIG_FILE: ours, RIALTO_MCP_CONFIG_FILE: usual, ...env }, before);
    lives.push(gateway);
    return gateway;
  }
  async function upstream() {
    const one = await TestUpstream.start();
    web.push(one);
    return one;
  }
  const names = async (): Promise<string[]> =>
    (await gateway!.rpc('tools/list')).result.tools.map(({ name }: { name: string }) => name);
  const servers = async () => (await gateway!.call('GET', '/api/mcp/servers')).body.items;
  const listed = (name: string) => eventually(names, (all) => all.includes(name));

  it('AE-01 AE-19 AE-58 files of MCP clients and the gateway define servers, with secrets from variables', async () => {
    const one = await upstream();
    const usualServer = {
      command: process.execPath,
      args: [script],
      env: { TOKEN: '${A_TOKEN}', MODE: '${MODE:-calm}' },
    };
    await start(
      {
        usual: {
          'My Program': { ...usualServer, timeout: 7_000, autoApprove: ['echo'] },
          off: { command: 'x', disabled: true },
        },
        ours: { web: { url: one.url, headers: { authorization: 'Bearer ${A_TOKEN}' }, toolAllowList: ['echo'] } },
      },
      { A_TOKEN: 'canary-declared-0123' },
    );
    await listed('my-program__environment');
    await listed('web__echo');
    const { result } = await gateway!.rpc('tools/call', { name: 'my-program__environment', arguments: {} });
    // The program returned the secret that it received; only that value is redacted.
    expect(JSON.parse(result.content[0].text).env).toMatchObject({ TOKEN: '[redacted]', MODE: 'calm' });
    expect(one.seen.every(({ authorization }) => authorization === 'Bearer canary-declared-0123')).toBe(true);
    const all = await eventually(servers, ([, { lastPingMs }]) => lastPingMs !== null);
    expect(all[1].lastPingMs).toBeGreaterThanOrEqual(0);
    expect(all).toEqual([
      expect.objectContaining({
        id: 'my-program',
        name: 'My Program',
        source: 'config',
        timeoutMs: 7_000,
        env: ['TOKEN', 'MODE'],
      }),
      expect.objectContaining({
        id: 'web',
        source: 'config',
        status: 'ready',
        headers: ['authorization'],
        toolAllowList: ['echo'],
      }),
    ]);
    const rows = await gateway!.sql('select * from mcp_servers');
    expect(JSON.stringify([all, rows, gateway!.log])).not.toContain('canary-declared');
  });

  it('a server with an answer that no row can hold does not prevent a read of the others', async () => {
    const [bad, good] = [await upstream(), await upstream()];
    bad.add('odd', () => ({ content: [] }), { description: 'a letter\u0000of none' });
    await good.down();
    await start({ ours: { bad: { url: bad.url }, good: { url: good.url } } });
    await listed('bad__odd');
    await good.listen();
    await listed('good__echo');
  });

  it('AN-97 the tools of the file of MCP clients are skills on the public card, and can be called there', async () => {
    await start({ usual: { own: { command: process.execPath, args: [script] } }, ours: {} });
    await listed('own__echo');
    const card = async () => (await fetch(`${gateway!.url}/.well-known/agent-card.json`)).json() as Promise<any>;
    const { skills } = await eventually(card, (one) => one.skills.length > 5);
    expect(skills.map(({ id }: { id: string }) => id)).toEqual(
      expect.arrayContaining([expect.stringContaining('echo')]),
    );
    const message = { messageId: 'm1', role: 'user', parts: [{ data: { text: 'hi' } }], metadata: { skillId: 'echo' } };
    const sent = await gateway!.call(
      'POST',
      '/a2a/agents/own/message:send',
      { message: { ...message, role: 'ROLE_USER' } },
      undefined,
      { 'A2A-Version': '1.0' },
    );
    expect(JSON.stringify(sent.body)).toContain('"hi"');
    await start({ usual: {} });
    expect((await card()).skills).toEqual([]);
  });

  it('(N13) AN-97 the tools of an MCP file stay skills next to a default agent, and its door finds them', async () => {
    const agents = [{ name: 'first', description: 'Says it again.', skills: [{ id: 'say' }], apiKeyEnv: 'FIRST_KEY' }];
    const key = 'the-key-of-the-first-alone';
    const twin = await upstream();
    const usual = { own: { command: process.execPath, args: [script] }, twin: { url: twin.url } };
    await start({ usual, more: { defaultAgent: 'first', agents } }, { FIRST_KEY: key });
    for (const name of ['own__echo', 'twin__echo']) await listed(name);
    const card = async () => (await fetch(`${gateway!.url}/.well-known/agent-card.json`)).json() as Promise<any>;
    const { name, skills, supportedInterfaces } = await eventually(card, (one) => one.skills.length > 5);
    const ids = skills.map(({ id }: { id: string }) => id);
    expect([name, ids]).toEqual(['first', expect.arrayContaining(['say', 'own.echo', 'twin.echo'])]);
    const doors = new Set(supportedInterfaces.map(({ url }: { url: string }) => new URL(url).pathname));
    expect([...doors]).toEqual(['/a2a']);
    const alone = await fetch(`${gateway!.url}/a2a/agents/first/.well-known/agent-card.json`);
    expect(((await alone.json()) as any).skills).toMatchObject([{ id: 'say' }]);
    const rpc = async (method: string, params: object, token?: string) => {
      const body = { jsonrpc: '2.0', id: 1, method, params };
      return (await gateway!.call('POST', '/a2a', body, token, { 'A2A-Version': '1.0' })).body.result;
    };
    const send = (skillId: string | undefined, token?: string) => {
      const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ data: { text: 'by a tool' } }] };
      return rpc('SendMessage', { message: { ...message, ...(skillId && { metadata: { skillId } }) } }, token);
    };
    const agentOf = async ({ task: { id } }: any) =>
      (
        await gateway!.sql(
          'select a.name from a2a_tasks t join published_agents a on a.id = t.agent_id where t.id = $1',
          [id],
        )
      )[0]!.name;
    const called = await send('own.echo');
    expect(called.task).toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' } });
    expect(JSON.stringify(called)).toContain('by a tool');
    expect((await rpc('GetTask', { id: called.task.id })).id).toBe(called.task.id);
    for (const [skillId, token] of [[undefined], ['say'], ['unknown'], ['own.echo', key]] as const)
      expect(await agentOf(await send(skillId, token))).toBe('first');
    const both = [called, await send('twin.echo')];
    // Without a default agent the same names are on the card, and found.
    await start({ usual });
    for (const name of ['own__echo', 'twin__echo']) await listed(name);
    both.push(await send('own.echo'), await send('twin.echo'));
    expect(await Promise.all(both.map(agentOf))).toEqual(['own', 'twin', 'own', 'twin']);
    for (const { task } of both) expect(task.history[0].metadata).toEqual({ skillId: 'echo' });
  });

  it('AN-97 a skipped server, with a name that another has registered, publishes no tools of that', async () => {
    const registered = await upstream();
    await start({});
    await gateway!.call('POST', '/api/mcp/servers', { id: 'own', url: registered.url });
    await start({ usual: { own: { command: process.execPath, args: [script] } } });
    expect(gateway!.log.join('')).toContain('was left out');
    expect((await gateway!.call('GET', '/api/a2a/published')).body.items).toEqual([]);
    const card = await fetch(`${gateway!.url}/a2a/agents/own/.well-known/agent-card.json`);
    expect([card.status, await card.text()]).toEqual([404, expect.not.stringContaining('echo')]);
  });

  it('a start follows the files: changed servers are updated, missing ones deleted, registered ones stay', async () => {
    const [one, other, registered] = [await upstream(), await upstream(), await upstream()];
    other.add('second', () => ({ content: [] }));
    await start({ ours: { one: { url: one.url }, two: { url: one.url, name: 'Two' } } });
    for (const name of ['one__echo', 'two__echo']) await listed(name);
    await gateway!.call('POST', '/api/mcp/servers', { id: 'api', url: registered.url });
    const before = await servers();
    await start({ ours: { one: { url: one.url }, two: { url: one.url, name: 'Two' } } });
    expect((await servers()).map(({ updatedAt }: any) => updatedAt)).toEqual(
      before.map(({ updatedAt }: any) => updatedAt),
    );
    await start({ ours: { two: { url: other.url, name: 'Other' }, api: { url: one.url } } });
    await listed('two__second');
    expect((await servers()).map(({ id, name, source }: any) => [id, name, source])).toEqual([
      ['api', expect.anything(), 'api'],
      ['two', 'Other', 'config'],
    ]);
    expect(gateway!.log.join()).toContain('an MCP server with this id was already registered through the API');
  });

  it('AE-50 an unreachable server delays no other, and has its tools when it can be reached', async () => {
    const [late, ready] = [await upstream(), await upstream()];
    await late.down();
    await start({ ours: { late: { url: late.url }, ready: { url: ready.url } } });
    await listed('ready__echo');
    const [{ counts }] = await servers();
    expect([counts.tools, await names()]).toEqual([0, expect.not.arrayContaining(['late__echo'])]);
    await late.listen();
    await eventually(names, (all) => all.includes('late__echo'));
  });

  it('a program of the operator needs no entry of the catalogue, and callers cannot replace it', async () => {
    await start({ usual: { own: { command: process.execPath, args: [script] } } });
    await listed('own__echo');
    const change = (to: object) => gateway!.call('PATCH', '/api/mcp/servers/own', to);
    expect(await change({ command: '/bin/cat' })).toMatchObject({ status: 409, body: { code: 'conflict' } });
    for (const bound of [
      { toolAllowList: ['echo'] },
      { roots: [] },
      { toolChanges: 'accept' },
      { resourceAllowList: [] },
    ])
      expect((await change(bound)).status).toBe(409);
    expect(await change({ timeoutMs: 5_000 })).toMatchObject({
      status: 200,
      body: { timeoutMs: 5_000, command: process.execPath },
    });
  });

  it('AE-65 AE-12 declared roots answer a server at once, without a question to its caller', async () => {
    const roots = [{ uri: 'file:///srv/data', name: 'data' }];
    await start({ usual: { own: { command: process.execPath, args: [script], roots } } });
    await listed('own__ask');
    const { result } = await gateway!.rpc('tools/call', { name: 'own__ask', arguments: { method: 'roots/list' } });
    expect(JSON.parse(result.content[0].text).result).toEqual({ roots });
  });

  it('are removed in their file, not by the API, and callers cannot replace them', async () => {
    const one = await upstream();
    await start({ ours: { web: { url: one.url } } });
    await listed('web__echo');
    const { status, body } = await gateway!.call('DELETE', '/api/mcp/servers/web');
    expect([status, body.code]).toEqual([409, 'conflict']);
    expect(await names()).toContain('web__echo');
  });
});
