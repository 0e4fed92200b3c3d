import { join } from 'node:path';
import { startExampleWorld, type ExampleWorld } from '../../support/documents/example-world.js';
import { unregisterAll } from '../../support/clients/a2e.js';
import { library } from '../../support/gateway/library.js';
import type { TestUpstream } from '../../support/stubs/upstream.js';

/* Runs the examples of the A2E page on MCP: its messages, its configuration, and its client in TypeScript. */
describe('the examples of A2E', () => {
  let world: ExampleWorld;
  let files: TestUpstream;

  beforeAll(async () => {
    world = await startExampleWorld('host.example.com');
    files = await library('sessions', 'file:///data', ['notes.txt']);
  });
  afterEach(() => unregisterAll(world.gateway));
  afterAll(async () => {
    await world.close();
    await files.close();
  });

  let count = 0;
  const say = (type: string, members: object = {}) =>
    world.json(
      `curl https://host.example.com/a2e -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
        -d '${JSON.stringify({ type, id: `m${++count}`, version: '1.0', ts: 1_700_000_000.5, ...members })}'`,
    );

  it('AE-02 AE-03 AE-04 AE-15 AE-16 AE-58 a configuration registers a server; it is listed and removed', async () => {
    const config = {
      server_id: 'local_fs',
      name: 'Local Files',
      transport: 'http',
      url: files.url,
      headers: { Authorization: 'Bearer token123' },
      timeout: 30.0,
      auto_reconnect: true,
      tool_allow_list: ['echo'],
      resource_allow_list: [],
    };
    const registered = await say('mcp/server/register/req', { config });
    expect(registered).toMatchObject({
      type: 'mcp/server/register/resp',
      version: '1.0',
      req_id: `m${count}`,
      ok: true,
      server: { server_id: 'local_fs', name: 'Local Files', status: 'ready', tool_count: 1 },
    });
    expect(typeof registered.ts).toBe('number');
    const { servers } = await say('mcp/server/list/req', { status_filter: '' });
    expect(servers.map(({ server_id }: { server_id: string }) => server_id)).toEqual(['local_fs']);
    expect((await say('mcp/server/list/req', { status_filter: 'error' })).servers).toEqual([]);
    expect(await say('mcp/server/unregister/req', { server_id: 'local_fs' })).toMatchObject({
      ok: true,
      server_id: 'local_fs',
    });
  });

  it('AE-16 AE-17 AE-21 AE-56 a server that is a program', async () => {
    const config = {
      server_id: 'local_fs',
      name: 'Local Filesystem',
      transport: 'STDIO',
      cmd: [process.execPath, join(process.cwd(), 'test/support/stubs/stdio-upstream.mjs')],
      cwd: world.folder,
      env: { GREETING: 'hello' },
      tool_allow_list: ['echo'],
    };
    const { server } = await say('mcp/server/register/req', { config });
    expect(server.tools).toEqual([{ name: 'echo', tool_name: 'local_fs__echo' }]);
    const called = await say('mcp/call_tool', { tool: 'echo', arguments: { text: 'hi' }, strategy: 'first' });
    expect(called).toMatchObject({ ok: true, tool: 'local_fs__echo', server_id: 'local_fs' });
  });

  it('AE-06 AE-07 AE-09 AE-10 AE-25 AE-76 tools, resources and prompts', async () => {
    await say('mcp/server/register/req', { config: { server_id: 'local_fs', transport: 'http', url: files.url } });
    const called = await say('mcp/call_tool', { tool: 'local_fs__echo', arguments: { text: 'hi' } });
    expect(called).toMatchObject({ ok: true, success: true, text: 'hi' });
    const { resources } = await say('mcp/resource/list/req', { server_id: '', cursor: '' });
    expect(resources).toMatchObject([{ uri: 'file:///data/notes.txt', name: 'notes.txt', mime_type: 'text/plain' }]);
    const read = await say('mcp/resource/read/req', { uri: 'file:///data/notes.txt', server_id: '' });
    expect(read).toMatchObject({ ok: true, contents: [{ uri: 'file:///data/notes.txt' }] });
    expect((await say('mcp/prompt/list/req', { server_id: '', cursor: '' })).prompts).toMatchObject([
      { name: 'greet' },
    ]);
    const prompt = await say('mcp/prompt/get/req', { name: 'greet', arguments: { who: 'Ada' }, server_id: '' });
    expect(prompt.messages[0].content.text).toContain('hello Ada');
  });

  it('AE-26 AE-28 AE-35 an error has a code and says whether a retry helps', async () => {
    expect((await say('mcp/server/unregister/req', { server_id: 'nobody' })).error).toMatchObject({
      code: 'mcp_server_not_found',
      retryable: false,
    });
    expect((await say('mcp/call_tool', { tool: 'nothing', arguments: {} })).error.code).toBe('mcp_tool_not_found');
  });

  it('AE-71 AE-72 AE-74 the client', async () => {
    const printed = await world.typescript(
      `
      import { A2EClient } from 'rialto/a2e';

      const mcp = new A2EClient('https://host.example.com', { token: process.env.TOKEN! });

      const info = await mcp.registerServer({
        server_id: 'local_fs',
        name: 'Local Files',
        transport: 'http',
        url: process.env.FILES_URL!,
        tool_allow_list: ['echo'],
      });
      console.log(info.name, info.tools.map((tool) => tool.name));

      for (const server of await mcp.listServers()) console.log(server.server_id, server.status);
      for (const tool of await mcp.listTools('local_fs')) console.log(tool.name);
      console.log(await mcp.findTool('echo'));

      const result = await mcp.callTool('echo', { text: 'hi' }, { strategy: 'first' });
      console.log(result.text);

      const routed = await mcp.callTool('echo', { text: 'hi' }, {
        strategy: 'first',
        toolApi: { callTool: async (name, args) => ({ name, args }) },
      });
      console.log(routed.name);

      for (const resource of await mcp.listResources()) console.log(resource.server_id, resource.uri);
      const prompt = await mcp.getPrompt('greet', { who: 'Ada' });
      console.log(prompt.messages.length);
      await mcp.close();
    `,
      { FILES_URL: files.url },
    );
    expect(printed.trim().split('\n')).toEqual([
      "Local Files [ 'echo' ]",
      'local_fs ready',
      'echo',
      "[ 'local_fs' ]",
      'hi',
      'local_fs__echo',
      'local_fs file:///data/notes.txt',
      '1',
    ]);
  });
});
