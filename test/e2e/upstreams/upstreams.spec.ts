import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { UpstreamStore } from '../../../src/upstreams/storage/upstream.store.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { connectLegacySdk, connectSdk } from '../../support/clients/mcp-clients.js';
import { Refusal, TestUpstream, type UpstreamKind } from '../../support/stubs/upstream.js';

describe('MCP servers as tools', () => {
  let gateway: TestGateway;
  const open: TestUpstream[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => gateway.close());

  const start = async (kind?: UpstreamKind): Promise<TestUpstream> => {
    const one = await TestUpstream.start(kind);
    open.push(one);
    return one;
  };
  const register = async ({ url }: TestUpstream, id: string, more: object = {}, token?: string) =>
    gateway.call('POST', '/api/mcp/servers', { id, url, ...more }, token);
  const tools = async (token?: string | null, path?: string): Promise<any[]> =>
    (await gateway.rpc('tools/list', {}, token, path)).result.tools;
  const names = async (token?: string | null, path?: string) => (await tools(token, path)).map(({ name }) => name);
  const call = (name: string, args: object = {}, token?: string) =>
    gateway.rpc('tools/call', { name, arguments: args }, token);
  const server = async (id: string) => (await gateway.call('GET', `/api/mcp/servers/${id}`)).body;

  it.each([
    ['sessions', 'streamable-http', '2025-11-25'],
    ['sse', 'sse', '2025-11-25'],
    ['modern', 'streamable-http', '2026-07-28'],
    ['websocket', 'websocket', '2025-11-25'],
  ] as const)(
    'AE-77 AE-01 AE-39 AE-46 AE-59 one with %s is registered, listed and called',
    async (kind, transport, version) => {
      const one = await start(kind);
      const { status, body } = await register(one, 'files', { transport, name: 'My files' });
      expect([status, body]).toEqual([
        201,
        expect.objectContaining({
          id: 'files',
          name: 'My files',
          transport,
          mcpVersion: version,
          serverName: 'upstream',
          serverVersion: '1.2.3',
          timeoutMs: 300_000,
          tools: [{ name: 'echo', toolName: 'files__echo' }],
        }),
      ]);
      expect((await tools()).find(({ name }) => name === 'files__echo')).toMatchObject({
        description: '[MCP:My files]',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
        _meta: { 'dev.rialto/tool': { server: 'files', tool: 'echo', tags: ['mcp', 'files', 'My files'] } },
      });
      expect((await call('files__echo', { text: 'hé' })).result).toEqual({ content: [{ type: 'text', text: 'hé' }] });
      expect(await server('files')).toMatchObject({ status: 'ready', error: null, connectedAt: expect.any(String) });
    },
  );

  it('AE-37 AE-56 AE-57 the same tool of two servers is two tools, and a hundred calls never mix', async () => {
    const [one, two] = [await start(), await start('modern')];
    const answers = (name: string): void =>
      (name === 'one' ? one : two).add('who', async ({ n }) => {
        await wait(Math.random() * 100);
        return { content: [{ type: 'text', text: `${name} ${String(n)}` }] };
      });
    answers('one');
    answers('two');
    await register(one, 'one');
    await register(two, 'two');
    expect(await names()).toEqual(expect.arrayContaining(['one__who', 'two__who']));
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, n) => call(`${n % 2 ? 'one' : 'two'}__who`, { n })),
    );
    expect(replies.map(({ result }) => result.content[0].text)).toEqual(
      Array.from({ length: 100 }, (_, n) => `${n % 2 ? 'one' : 'two'} ${n}`),
    );
  });

  it('AE-68 relays results, structured content and the definition of a tool unchanged', async () => {
    const one = await start('modern');
    const definition = {
      title: 'Shapes',
      description: 'Has all there is.',
      inputSchema: { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', 'x-own': { z: 1, a: [2] } },
      outputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
      annotations: { readOnlyHint: true, title: 'S' },
      icons: [{ src: 'https://example.com/i.png', mimeType: 'image/png' }],
      _meta: { 'com.example/key': [1, { deep: true }] },
    };
    const answer = {
      content: [
        { type: 'text', text: '1', annotations: { audience: ['user'] } },
        { type: 'image', data: 'AAAA', mimeType: 'image/png' },
        { type: 'resource', resource: { uri: 'test://x', text: 'x', mimeType: 'text/plain' } },
      ],
      structuredContent: { n: 1 },
      _meta: { 'com.example/answer': 'kept' },
    };
    one.add('shapes', () => answer, definition);
    one.add('fails', () => ({ content: [{ type: 'text', text: 'sorry' }], isError: true }));
    await register(one, 'one');
    const listed = (await tools()).find(({ name }) => name === 'one__shapes');
    const { _meta, description, ...same } = definition;
    expect(listed).toMatchObject(same);
    expect(JSON.stringify(listed.inputSchema)).toBe(JSON.stringify(definition.inputSchema));
    expect([listed.description, listed._meta['com.example/key']]).toEqual([
      `[MCP:upstream] ${description}`,
      _meta['com.example/key'],
    ]);
    const { result } = await call('one__shapes');
    expect(result).toMatchObject(answer);
    expect((await call('one__fails')).result).toMatchObject({ isError: true, content: [{ text: 'sorry' }] });
  });

  it('AE-26 AE-28 AE-67 an error of the server keeps its code, text and data; an unknown name is -32602', async () => {
    const one = await start();
    one.add('refuses', () => {
      throw new Refusal(-32042, 'go there first', { url: 'https://example.com/consent' });
    });
    await register(one, 'one');
    expect((await call('one__refuses')).error).toMatchObject({
      code: -32042,
      message: expect.stringContaining('go there first'),
      data: { url: 'https://example.com/consent' },
    });
    for (const name of ['one__absent', 'absent__echo', 'one__'])
      expect((await call(name)).error).toMatchObject({ code: -32602, message: `Unknown tool: ${name}` });
    expect((await gateway.call('DELETE', '/api/mcp/servers/absent')).status).toBe(404);
  });

  it('AE-21 AE-23 only the tools of the allow list exist, also for direct calls', async () => {
    const one = await start();
    one.add('secret', () => ({ content: [] }));
    const { body } = await register(one, 'one', { toolAllowList: ['echo'] });
    expect(body.tools).toEqual([{ name: 'echo', toolName: 'one__echo' }]);
    expect(await names()).not.toContain('one__secret');
    expect((await call('one__secret')).error.code).toBe(-32602);
    expect(one.calls).toEqual([]);
    await gateway.call('PATCH', '/api/mcp/servers/one', { toolAllowList: [] });
    expect(await names()).toContain('one__secret');
    const unnamed = await gateway.call('POST', '/api/mcp/servers', { url: one.url });
    expect(unnamed.body).toMatchObject({ id: expect.stringMatching(/^[0-9a-f]{8}$/), toolAllowList: [] });
  });

  it('AE-60 a tool that a server adds is listed, and its clients are notified', async () => {
    for (const kind of ['sessions', 'modern'] as const) {
      const one = await start(kind);
      await register(one, kind);
      await call(`${kind}__echo`, { text: 'connects' });
      const legacy = await connectLegacySdk(`${gateway.url}/mcp`, gateway.token);
      let notified = 0;
      legacy.client.fallbackNotificationHandler = () => Promise.resolve(void notified++);
      await legacy.standing;
      one.add('added', () => ({ content: [] }));
      await eventually(
        async () => {
          await one.tellChanged();
          await wait(100);
          return names();
        },
        (all) => all.includes(`${kind}__added`),
      );
      await eventually(
        () => notified,
        (count) => count > 0,
      );
      await legacy.close();
    }
  });

  it('AE-18 headers are sent with every request, sealed at rest, and never shown', async () => {
    const one = await start();
    const { body } = await register(one, 'one', { headers: { Authorization: 'Bearer canary-upstream' } });
    await call('one__echo', { text: 'x' });
    expect(one.seen.length).toBeGreaterThan(2);
    expect(one.seen.map(({ authorization }) => authorization)).toEqual(one.seen.map(() => 'Bearer canary-upstream'));
    expect(body.headers).toEqual(['Authorization']);
    const rows = await gateway.sql('select * from mcp_servers');
    const visible = JSON.stringify([body, await server('one'), rows, await gateway.sql('select * from audit_events')]);
    expect(visible + gateway.log.join()).not.toContain('canary-upstream');
  });

  it('AE-16 AE-18 AE-24 a WebSocket has its headers, reconnects when it broke, and takes only ws and wss', async () => {
    const one = await start('websocket');
    expect((await register(one, 'ws', { headers: { 'X-Key': 'k' } })).body).toMatchObject({ transport: 'websocket' });
    expect((await call('ws__echo', { text: 'a' })).result.content[0].text).toBe('a');
    expect(one.seen.every((headers) => headers['x-key'] === 'k' && headers['sec-websocket-protocol'] === 'mcp')).toBe(
      true,
    );
    let begun = (): void => undefined;
    const started = new Promise<void>((resolve) => (begun = resolve));
    one.add('never', () => (begun(), new Promise(() => undefined)));
    await gateway.call('POST', '/api/mcp/servers/ws/refresh');
    const under = call('ws__never');
    await started;
    await one.down();
    expect((await under).error.data.code).toBe('remote_transport');
    await one.listen();
    await eventually(
      () => call('ws__echo', { text: 'again' }),
      ({ result }) => result?.content[0].text === 'again',
    );
    for (const [url, transport] of [
      [one.url, 'sse'],
      [one.url, 'streamable-http'],
      [one.url.replace('ws:', 'http:'), 'ws'],
      ['ws://10.0.0.1/mcp', undefined],
    ])
      expect((await gateway.call('POST', '/api/mcp/servers', { url, transport })).status).toBeGreaterThanOrEqual(400);
    expect((await gateway.call('POST', '/api/mcp/servers', { url: 'ws://10.0.0.1/mcp' })).status).toBe(422);
    expect((await gateway.call('PATCH', '/api/mcp/servers/ws', { transport: 'sse' })).status).toBe(400);
    const other = await start('sessions');
    expect((await gateway.call('PATCH', '/api/mcp/servers/ws', { url: other.url })).body).toMatchObject({
      transport: 'streamable-http',
    });
  });

  it('AE-47 an unusable server is not registered, with the reason', async () => {
    const one = await start();
    await one.down();
    expect((await register(one, 'one')).status).toBe(502);
    const inside = await gateway.call('POST', '/api/mcp/servers', { id: 'x', url: 'http://10.0.0.1/mcp' });
    expect([inside.status, inside.body.detail]).toEqual([422, 'the host "10.0.0.1" may not be called']);
    await one.listen();
    for (const wrong of [{ id: 'a__b' }, { id: 'UP' }, { transport: 'carrier-pigeon' }, { headers: { Host: 'x' } }])
      expect((await register(one, 'ok', wrong)).status).toBe(400);
    expect((await gateway.call('GET', '/api/mcp/servers')).body.items).toEqual([]);
    expect((await register(one, 'one')).status).toBe(201);
    expect((await register(one, 'one')).status).toBe(409);
  });

  it('AE-20 AE-27 AE-58 an unreachable server fails at once, stays listed, and is used when it returns', async () => {
    const one = await start();
    await register(one, 'one');
    await call('one__echo', { text: 'x' });
    await one.down();
    expect((await call('one__echo', { text: 'x' })).error.data).toMatchObject({ code: 'remote_transport' });
    expect(await names()).toContain('one__echo');
    expect(await server('one')).toMatchObject({ status: 'error', error: expect.any(String) });
    expect((await gateway.call('GET', '/api/mcp/servers?status=error')).body.items).toHaveLength(1);
    await one.listen();
    const { result } = await eventually(
      () => call('one__echo', { text: 'back' }),
      (answer) => answer.result !== undefined,
    );
    expect(result.content[0].text).toBe('back');
    expect((await server('one')).status).toBe('ready');
  });

  it('a server that lost its sessions gets the request in a new one, once', async () => {
    const one = await start();
    await register(one, 'one');
    await call('one__echo', { text: 'x' });
    one.forgetSessions();
    const answers = await Promise.all(Array.from({ length: 20 }, () => call('one__echo', { text: 'again' })));
    expect(answers.map(({ result }) => result?.content[0].text)).toEqual(Array(20).fill('again'));
    expect(one.calls).toHaveLength(21);
  });

  it('AE-04 AE-48 after it is unregistered, its tools are gone and calls in progress are unavailable', async () => {
    const one = await start();
    let begun = false;
    one.add('sleeps', (_, signal) => {
      begun = true;
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ content: [] })));
    });
    await register(one, 'one');
    const pending = call('one__sleeps');
    await eventually(
      () => begun,
      (is) => is,
    );
    expect((await gateway.call('DELETE', '/api/mcp/servers/one')).status).toBe(204);
    expect((await pending).error.data).toMatchObject({ code: 'unavailable' });
    expect(await names()).not.toContain('one__sleeps');
    expect((await call('one__sleeps')).error.code).toBe(-32602);
  });

  it('AE-19 a call ends at the timeout of its server', async () => {
    const one = await start();
    one.add('sleeps', () => new Promise(() => undefined));
    await register(one, 'one', { timeoutMs: 200 });
    expect((await call('one__sleeps')).error).toMatchObject({ code: -32201, data: { code: 'remote_timeout' } });
  });

  it('RE-89 policy decides each tool by its canonical name, and hides servers that a caller may not see', async () => {
    const one = await start();
    await register(one, 'one');
    const forbid = (name: string, text: string) => gateway.call('POST', '/api/policies', { name, text });
    await forbid('no-echo', 'forbid(principal, action == Action::"mcp_call", resource == Tool::"one__echo");');
    expect((await call('one__echo')).error).toMatchObject({ code: -32003, data: { policies: ['no-echo'] } });
    expect(one.calls).toEqual([]);
    await forbid('hidden', 'forbid(principal, action == Action::"mcp_discover", resource == McpServer::"one");');
    expect(await names()).not.toContain('one__echo');
    expect((await gateway.call('GET', '/api/mcp/servers/one')).status).toBe(404);
    for (const name of ['no-echo', 'hidden']) await gateway.call('DELETE', `/api/policies/${name}`);
    expect((await gateway.call('GET', '/api/mcp/servers/one')).status).toBe(200);
  });

  it('a server belongs to its org only', async () => {
    const one = await start();
    await register(one, 'one');
    const stranger = await gateway.tokenOf('globex', 'gina', 'admin');
    await gateway.call(
      'POST',
      '/api/policies',
      { name: 'all', text: 'permit(principal, action, resource);' },
      stranger,
    );
    expect(await names(stranger)).not.toContain('one__echo');
    expect((await call('one__echo', {}, stranger)).error.code).toBe(-32602);
    expect((await gateway.call('GET', '/api/mcp/servers', undefined, stranger)).body.items).toEqual([]);
    expect((await register(one, 'one', {}, stranger)).status).toBe(201);
    expect((await gateway.call('DELETE', '/api/mcp/servers/one', undefined, stranger)).status).toBe(204);
    expect(await names()).toContain('one__echo');
  });

  it('AE-45 an SSE server can send its client only to its own origin', async () => {
    const other = await start();
    const far = other.url.replace('127.0.0.1', 'localhost');
    const hostile = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`event: endpoint\ndata: ${far}\n\n`);
    });
    await new Promise<void>((listening) => hostile.listen(0, '127.0.0.1', listening));
    const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}/sse`;
    const { status } = await gateway.call('POST', '/api/mcp/servers', { id: 'sse', url, transport: 'sse' });
    expect([status, other.seen]).toEqual([502, []]);
    hostile.closeAllConnections();
    await new Promise((closed) => hostile.close(closed));
  });

  it('AE-36 ten servers are one list, in one order, which can be filtered', async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => start()));
    for (const [index, one] of all.entries()) await register(one, `s${index}`);
    const listed = (await names()).filter((name) => name.includes('__'));
    expect(listed).toEqual(Array.from({ length: 10 }, (_, index) => `s${index}__echo`));
    expect(await names(undefined, '/mcp?servers=s3,s7')).toEqual(['s3__echo', 's7__echo']);
    expect(await names(undefined, '/mcp?agents=none')).toEqual([]);
  });

  it('a change of one server reads only that server again', async () => {
    for (const id of ['a', 'b']) await register(await start(), id);
    const list = async () => (await gateway.call('GET', '/api/mcp/servers')).body.items;
    expect(await list()).toHaveLength(2);
    const read = jest.spyOn(gateway.gateway.get(UpstreamStore), 'findByIds');
    await gateway.call('PATCH', '/api/mcp/servers/b', { name: 'Second' });
    expect((await list()).map(({ name }: { name: string }) => name)).toEqual(['upstream', 'Second']);
    expect(new Set(read.mock.calls.flat(2)).size).toBe(1);
  });

  it('clients of both generations list and call them', async () => {
    const one = await start('modern');
    one.add('echo', ({ text }) => ({
      content: [{ type: 'text', text }],
      _meta: { 'com.example/of': 'the answer' },
    }));
    await register(one, 'one');
    const clients = [
      await connectLegacySdk(`${gateway.url}/mcp`, gateway.token),
      await connectSdk(`${gateway.url}/mcp`, gateway.token, 'pinned'),
    ];
    for (const client of clients) {
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('one__echo');
      const { content, ...more } = await client.callTool({ name: 'one__echo', arguments: { text: 'hi' } });
      expect(content).toEqual([{ type: 'text', text: 'hi' }]);
      expect(more).toMatchObject({ _meta: { 'com.example/of': 'the answer' } });
      await client.close();
    }
  });

  it('AE-41 another process lists them without a connection, and opens one for calls', async () => {
    const other = await startTestGateway({}, gateway);
    const one = await start();
    await register(one, 'one');
    const asked = one.seen.length;
    await eventually(
      async () => JSON.stringify(await other.rpc('tools/list', {}, gateway.token)),
      (listed) => listed.includes('one__echo'),
    );
    expect(one.seen).toHaveLength(asked);
    const answer = await other.rpc('tools/call', { name: 'one__echo', arguments: { text: 'x' } }, gateway.token);
    expect(answer.result.content[0].text).toBe('x');
    await other.close();
  });
});
