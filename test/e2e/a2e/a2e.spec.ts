import { message, poster, unregisterAll } from '../../support/clients/a2e.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { library } from '../../support/gateway/library.js';
import { Refusal, TestUpstream } from '../../support/stubs/upstream.js';

const envelope = {
  id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  version: '1.0',
  ts: expect.any(Number),
};

describe('A2E messages by POST', () => {
  let gateway: TestGateway;
  const open: TestUpstream[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    await unregisterAll(gateway);
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => gateway.close());

  const { post, say } = poster(() => gateway);
  const started = async (kind: Parameters<typeof TestUpstream.start>[0] = 'sessions') => {
    const one = await TestUpstream.start(kind);
    open.push(one);
    return one;
  };
  const shelf = async (root: string, files: string[]) => {
    const one = await library('sessions', root, files);
    open.push(one);
    return one;
  };
  const register = async (one: TestUpstream, server_id: string, more: object = {}) => {
    const reply = await say('mcp/server/register/req', { server_id, url: one.url, ...more });
    expect(reply).toMatchObject({ ok: true, server_id });
    return reply;
  };
  const servers = async (payload: object = {}) => (await say('mcp/server/list/req', payload)).servers;

  describe('servers', () => {
    it('AE-02 AE-15 AE-58 a message connects and registers a server, and returns all its fields', async () => {
      const one = await started('websocket');
      const request = message('mcp/server/register/req', { server_id: 'files', name: 'Files', url: one.url });
      const before = Date.now() / 1_000;
      const reply = await post(request);
      expect(reply).toEqual({
        ...envelope,
        type: 'mcp/server/register/resp',
        req_id: request.id,
        ok: true,
        server_id: 'files',
        server: {
          server_id: 'files',
          name: 'Files',
          transport: 'websocket',
          status: 'ready',
          mcp_version: '2025-11-25',
          server_name: 'upstream',
          server_version: '1.2.3',
          tool_count: 1,
          resource_count: 0,
          prompt_count: 0,
          last_ping_ms: null,
          error: null,
          connected_at: expect.any(Number),
          tools: [{ name: 'echo', tool_name: 'files__echo' }],
        },
      });
      expect(reply.ts - before).toBeLessThan(30);
      expect(reply.server.connected_at).toBeGreaterThanOrEqual(Math.floor(before));
    });

    it('AE-03 AE-49 AE-58 servers are listed with their status, and filtered by it', async () => {
      await register(await started('websocket'), 'a');
      await register(await started('websocket'), 'b');
      await gateway.call('POST', '/api/mcp/servers', { id: 'c', url: (await started()).url });
      const all = await servers();
      expect(all.map(({ server_id, status }: any) => [server_id, status])).toEqual([
        ['a', 'ready'],
        ['b', 'ready'],
        ['c', 'disconnected'],
      ]);
      expect((await servers({ status: 'ready' })).map(({ server_id }: any) => server_id)).toEqual(['a', 'b']);
      expect(await say('mcp/server/list/req', { status: 'asleep' })).toMatchObject({
        ok: false,
        error: { code: 'mcp_protocol_error' },
      });
      const [{ tools }] = await servers({ server_id: 'a', include_tools: true });
      expect(tools).toEqual([
        {
          name: 'echo',
          tool_name: 'a__echo',
          description: null,
          input_schema: { type: 'object', properties: { text: { type: 'string' } } },
          annotations: {},
        },
      ]);
    });

    it('AE-04 AE-26 an unregistered server is gone with its tools; an unknown one is not found', async () => {
      const one = await started('websocket');
      await register(one, 'gone');
      expect(await say('mcp/server/unregister/req', { server_id: 'gone' })).toMatchObject({
        type: 'mcp/server/unregister/resp',
        ok: true,
        server_id: 'gone',
      });
      expect(await servers()).toEqual([]);
      await eventually(
        () => one.connections,
        (count) => count === 0,
      );
      for (const payload of [{ server_id: 'gone' }, { server_id: 'never' }])
        expect(await say('mcp/server/unregister/req', payload)).toMatchObject({
          ok: false,
          error: { code: 'mcp_server_not_found', retryable: false, data: { retryable: false } },
        });
      expect((await say('mcp/call_tool', { tool: 'gone__echo' })).error.code).toBe('mcp_tool_not_found');
    });

    it('AE-12 the roots that are configured for a server are sent to it', async () => {
      const roots = [{ uri: 'file:///srv/notes', name: 'notes' }];
      await register(await started(), 'own', { roots });
      expect(await say('mcp/roots/list/req', { server_id: 'own' })).toMatchObject({
        type: 'mcp/roots/list/resp',
        roots,
      });
      expect(await say('mcp/root/list/req', { server_id: 'own' })).toMatchObject({ type: 'mcp/root/list/resp', roots });
      expect((await say('mcp/roots/list/req', { server_id: 'no' })).error.code).toBe('mcp_server_not_found');
    });

    it('AE-16 AE-18 AE-23 a registration has transport, headers and timeouts, and the published defaults', async () => {
      const one = await started('sse');
      const { server } = await register(one, 'old', {
        transport: 'SSE',
        headers: { 'x-key': 'sesame' },
        timeout: 1.5,
        cmd: [],
        env: {},
        cwd: null,
      });
      expect(server.transport).toBe('sse');
      expect(one.seen.every((headers) => headers['x-key'] === 'sesame')).toBe(true);
      expect((await gateway.call('GET', '/api/mcp/servers/old')).body).toMatchObject({ timeoutMs: 1_500 });
      const { server_id } = await say('mcp/server/register/req', { data: { url: (await started()).url } });
      expect(server_id).toMatch(/^[0-9a-f]{8}$/);
      expect((await gateway.call('GET', `/api/mcp/servers/${server_id}`)).body).toMatchObject({
        timeoutMs: 300_000,
        autoReconnect: true,
        toolAllowList: [],
        resourceAllowList: [],
      });
      const wrong = await say('mcp/server/register/req', { url: one.url, transport: 'pigeon', timeout: 0 });
      expect(wrong.error).toMatchObject({
        code: 'mcp_protocol_error',
        data: { violations: [{ field: 'transport' }, { field: 'timeout' }] },
      });
    });
  });

  describe('resources and prompts', () => {
    it('AE-06 AE-25 AE-36 AE-50 resources are listed over all servers, also with a slow one', async () => {
      await register(await shelf('a://x', ['one', 'two.bin']), 'a');
      const slow = await shelf('b://x', ['three']);
      await register(slow, 'b');
      for (const method of ['resources/list', 'prompts/list']) slow.methods.set(method, () => new Promise(() => {}));
      const { resources } = await say('mcp/resource/list/req');
      expect(resources).toEqual(
        [
          ['a', 'a://x/one'],
          ['a', 'a://x/two.bin'],
          ['b', 'b://x/three'],
        ].map(([server_id, uri]) => ({
          uri,
          name: uri!.slice(6),
          description: null,
          mime_type: 'text/plain',
          server_id,
          annotations: {},
        })),
      );
      expect((await say('mcp/resource/list/req', { server_id: 'b' })).resources).toHaveLength(1);
      expect((await say('mcp/resource/list/req', { server_id: 'c' })).error.code).toBe('mcp_server_not_found');
    });

    it('AE-07 AE-29 AE-51 AE-52 a resource is read, text or blob, on its server or on the hinted one', async () => {
      await register(await shelf('a://x', ['one', 'two.bin']), 'a');
      await register(await shelf('b://x', ['three']), 'b');
      const read = (uri: string, more: object = {}) => say('mcp/resource/read/req', { uri, ...more });
      expect(await read('a://x/one')).toMatchObject({
        type: 'mcp/resource/read/resp',
        ok: true,
        uri: 'a://x/one',
        contents: [{ uri: 'a://x/one', text: 'a://x says a://x/one' }],
      });
      expect((await read('a://x/two.bin')).contents).toEqual([
        { uri: 'a://x/two.bin', blob: 'AAEC', mime_type: 'application/octet-stream' },
      ]);
      expect((await read('b://x/three')).contents[0].text).toContain('b://x says');
      expect((await read('z://q', { server_id: 'b' })).contents[0].text).toContain('b://x says');
      expect((await read('a://x/nowhere')).error).toMatchObject({
        code: 'mcp_resource_not_found',
        retryable: false,
        data: { mcp: { code: -32602 } },
      });
      for (const payload of [{}, { uri: 7 }, { uri: '' }])
        expect((await say('mcp/resource/read/req', payload)).error.code).toBe('mcp_protocol_error');
    });

    it('AE-29 without a server with resources, no resource is found', async () => {
      await register(await started(), 'plain');
      expect((await say('mcp/resource/read/req', { uri: 'a://x' })).error.code).toBe('mcp_resource_not_found');
    });

    it('AE-09 AE-10 AE-30 AE-53 prompts are listed over all servers, and filled in by the first with one', async () => {
      await register(await shelf('a://x', []), 'a');
      await register(await shelf('b://x', []), 'b');
      const { prompts } = await say('mcp/prompt/list/req');
      expect(prompts).toEqual(
        ['a', 'b'].map((server_id) => ({
          name: 'greet',
          prompt_name: `${server_id}__greet`,
          description: null,
          server_id,
          arguments: [{ name: 'who', required: true }],
        })),
      );
      const get = (payload: object) => say('mcp/prompt/get/req', { arguments: { who: 'Ada' }, ...payload });
      const promptText = async (payload: object) => (await get(payload)).messages[0].content.text;
      expect(await get({ name: 'greet' })).toMatchObject({
        ok: true,
        name: 'greet',
        server_id: 'a',
        description: 'greet',
      });
      expect(await promptText({ name: 'greet' })).toBe('hello Ada from a://x');
      expect(await promptText({ name: 'greet', server_id: 'b' })).toBe('hello Ada from b://x');
      expect(await promptText({ name: 'b__greet' })).toBe('hello Ada from b://x');
      for (const payload of [{ name: 'nobody' }, { name: 'a__nobody' }, { name: 'nobody', server_id: 'a' }])
        expect((await get(payload)).error.code).toBe('mcp_prompt_not_found');
    });

    it('AE-34 a server without prompts or resources lacks that capability', async () => {
      await register(await started(), 'plain');
      for (const [type, payload] of [
        ['mcp/prompt/list/req', {}],
        ['mcp/prompt/get/req', { name: 'greet' }],
        ['mcp/resource/list/req', {}],
        ['mcp/resource/read/req', { uri: 'a://x' }],
        ['mcp/resource/subscribe/req', { uri: 'a://x' }],
      ] as const)
        expect((await say(type, { server_id: 'plain', ...payload })).error).toMatchObject({
          code: 'mcp_capability_missing',
          retryable: false,
        });
    });
  });

  describe('tools', () => {
    it('AE-68 AE-76 a tool is called as in MCP: texts are joined, images kept, its own failure returned', async () => {
      const one = await started();
      const image = { type: 'image', data: 'AAEC', mimeType: 'image/png' };
      const result = { content: [{ type: 'text', text: 'one' }, image, { type: 'text', text: 'two' }] };
      one.add('mixed', () => result);
      one.add('fails', () => ({ content: [{ type: 'text', text: 'no luck' }], isError: true }));
      await register(one, 'own');
      const request = message('mcp/call_tool', { tool: 'own__mixed', arguments: { text: 'x' } });
      expect(await post(request)).toEqual({
        ...envelope,
        type: 'mcp/call_tool/resp',
        req_id: request.id,
        ok: true,
        tool: 'own__mixed',
        server_id: 'own',
        success: true,
        text: 'one\ntwo',
        images: [{ data: 'AAEC', mime_type: 'image/png' }],
        result,
      });
      expect(one.calls.at(-1)).toEqual({ name: 'mixed', args: { text: 'x' } });
      expect(await say('mcp/call_tool/req', { name: 'fails', server_id: 'own' })).toMatchObject({
        ok: true,
        success: false,
        text: 'no luck',
        result: { isError: true },
      });
    });

    it('AE-28 AE-35 AE-67 unknown tools are not found, whether the gateway or the server reports it', async () => {
      const one = await started();
      one.add('picky', () => {
        throw new Refusal(-32602, 'not like this');
      });
      one.add('broken', () => {
        throw new Refusal(-32603, 'oh no', { why: 'x' });
      });
      await register(one, 'own', { tool_allow_list: ['picky', 'broken'] });
      const error = async (tool: string) => (await say('mcp/call_tool', { tool })).error;
      for (const tool of ['own__nothing', 'nobody__echo', 'nothing', 'own__echo'])
        expect(await error(tool)).toMatchObject({ code: 'mcp_tool_not_found', retryable: false });
      expect(await error('own__picky')).toMatchObject({ code: 'mcp_tool_not_found', data: { mcp: { code: -32602 } } });
      expect(await error('own__broken')).toMatchObject({
        code: 'mcp_protocol_error',
        message: expect.stringContaining('oh no'),
        data: { retryable: false, mcp: { code: -32603, data: { why: 'x' } } },
      });
    });

    it('AE-72 AE-73 AE-75 a strategy chooses among servers; an error names the unknown strategy or tool', async () => {
      for (const id of ['a', 'b']) await register(await started(), id);
      const called = async (more: object) => (await say('mcp/call_tool', { tool: 'echo', ...more })).server_id;
      expect([await called({}), await called({ strategy: 'first' })]).toEqual(['a', 'a']);
      const turns = [await called({ strategy: 'round-robin' }), await called({ strategy: 'round-robin' })];
      expect(turns.sort()).toEqual(['a', 'b']);
      expect((await say('mcp/call_tool', { tool: 'echo', strategy: 'guess' })).error).toMatchObject({
        code: 'mcp_protocol_error',
        message: expect.stringContaining('"guess"'),
      });
      expect((await say('mcp/call_tool', { tool: 'nothing' })).error).toMatchObject({
        code: 'mcp_tool_not_found',
        message: 'No server found for tool: nothing',
      });
    });

    it('AE-19 AE-67 a server that is slower than its timeout is unavailable', async () => {
      const one = await started();
      one.add('slow', () => new Promise(() => {}));
      await register(one, 'own', { timeout: 0.3 });
      expect((await say('mcp/call_tool', { tool: 'own__slow' })).error).toMatchObject({
        code: 'mcp_unavailable',
        retryable: true,
        data: { retryable: true, reason: 'remote_timeout' },
      });
    });

    it('AE-27 AE-31 a connection that breaks in a call is a transport error; its server is unavailable', async () => {
      const one = await started('websocket');
      one.add('breaks', () => one.down().then(() => new Promise(() => {})));
      await register(one, 'own');
      expect((await say('mcp/call_tool', { tool: 'own__breaks' })).error).toMatchObject({
        code: 'mcp_transport_error',
        retryable: true,
        data: { retryable: true },
      });
      expect((await say('mcp/call_tool', { tool: 'own__echo' })).error).toMatchObject({
        code: 'mcp_unavailable',
        retryable: true,
        data: { retryable: true },
      });
      expect(await servers()).toMatchObject([{ status: 'error', error: expect.any(String) }]);
    });

    it('AE-32 an invalid answer of a server is a protocol error', async () => {
      const one = await shelf('a://x', ['one']);
      one.methods.set('resources/read', () => ({ nothing: 'of the kind' }));
      one.methods.set('prompts/get', () => ({ messages: 'none' }));
      await register(one, 'own');
      for (const [type, payload] of [
        ['mcp/resource/read/req', { uri: 'a://x/one' }],
        ['mcp/prompt/get/req', { name: 'greet' }],
      ] as const)
        expect((await say(type, payload)).error).toMatchObject({
          code: 'mcp_protocol_error',
          retryable: false,
          data: { reason: 'remote_invalid_response', retryable: false },
        });
    });
  });
});
