import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const script = (server: string): string =>
  join(process.cwd(), 'node_modules', '@modelcontextprotocol', server, 'dist', 'index.js');
const sampled = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' };

/** Tests the published reference servers behind the gateway. */
describe('the reference servers', () => {
  let gateway: TestGateway;
  const children: ChildProcess[] = [];
  const clients: Client[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
    for (const child of children.splice(0)) {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
  });
  afterAll(() => gateway.close());

  const freePort = async (): Promise<number> => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((done) => server.close(done));
    return port;
  };
  /** Starts `server-everything`: as a program, or at a URL that listens. */
  const everything = async (kind: 'stdio' | 'streamableHttp' | 'sse'): Promise<object> => {
    if (kind === 'stdio') return { command: process.execPath, args: [script('server-everything')] };
    const port = await freePort();
    const child = spawn(process.execPath, [script('server-everything'), kind], {
      env: { PATH: process.env.PATH, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    children.push(child);
    await eventually(
      () => fetch(`http://127.0.0.1:${port}`).then(Boolean, () => false),
      (isUp) => isUp,
    );
    return kind === 'sse'
      ? { url: `http://127.0.0.1:${port}/sse`, transport: 'sse' }
      : { url: `http://127.0.0.1:${port}/mcp` };
  };
  const register = async (place: object, id = 'ref') => {
    const registered = await gateway.call('POST', '/api/mcp/servers', { id, ...place });
    expect(registered).toMatchObject({ status: 201 });
    return registered.body;
  };
  const client = async ({ pin, isAskable = true }: { pin?: string; isAskable?: boolean } = {}) => {
    const one = new Client(
      { name: 'c', version: '1' },
      {
        capabilities: isAskable ? { sampling: {}, elicitation: { form: {} }, roots: {} } : {},
        versionNegotiation: { mode: pin === undefined ? 'legacy' : { pin } },
      },
    );
    if (isAskable) {
      one.setRequestHandler('sampling/createMessage', () => sampled as never);
      one.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }) as never);
      one.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///home/ada', name: 'home' }] }));
    }
    const headers = { authorization: `Bearer ${gateway.token}` };
    const at = new URL(`${gateway.url}/mcp/servers/ref`);
    await one.connect(new StreamableHTTPClientTransport(at, { requestInit: { headers } }));
    clients.push(one);
    return one;
  };
  const textOf = async (one: Client, name: string, args: Record<string, unknown> = {}) => {
    const { content } = (await one.callTool({ name, arguments: args })) as { content: { text: string }[] };
    return content.map(({ text }) => text).join('\n');
  };

  it.each([
    ['stdio', undefined],
    ['stdio', '2026-07-28'],
    ['streamableHttp', undefined],
    ['streamableHttp', '2026-07-28'],
    ['sse', undefined],
  ] as const)(
    'AE-01 AE-45 AE-46 server-everything over %s supports all its features for a client of %s',
    async (kind, pin) => {
      const { counts, mcpVersion } = await register(await everything(kind));
      expect(counts).toEqual({ tools: expect.any(Number), resources: 7, resourceTemplates: 2, prompts: 4 });
      expect([counts.tools > 12, mcpVersion]).toEqual([true, '2025-11-25']);
      const one = await client({ pin });
      expect(await textOf(one, 'echo', { message: 'hello' })).toBe('Echo: hello');
      expect(await textOf(one, 'get-sum', { a: 2, b: 40 })).toContain('42');
      const image = (await one.callTool({ name: 'get-tiny-image', arguments: {} })) as any;
      expect(image.content.find(({ type }: any) => type === 'image')).toMatchObject({ mimeType: 'image/png' });
      const structured = (await one.callTool({
        name: 'get-structured-content',
        arguments: { location: 'New York' },
      })) as any;
      expect(structured.structuredContent).toMatchObject({ temperature: expect.any(Number) });
      const links = (await one.callTool({ name: 'get-resource-links', arguments: { count: 2 } })) as any;
      expect(links.content.filter(({ type }: any) => type === 'resource_link')).toHaveLength(2);
      const progress: (number | undefined)[][] = [];
      await one.callTool(
        { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } },
        { onprogress: ({ progress: at, total }) => progress.push([at, total]) },
      );
      // Between them the gateway may send progress without a total, and the client may lose progress that arrives with
      // the result.
      const withTotal = progress.filter(([, total]) => total !== undefined);
      expect([
        [[1, 2]],
        [
          [1, 2],
          [2, 2],
        ],
      ]).toContainEqual(withTotal);
      expect(await textOf(one, 'trigger-sampling-request', { prompt: 'capital?', maxTokens: 5 })).toContain('Paris');
      expect(await textOf(one, 'trigger-elicitation-request')).toContain('Ada');
      const { resources } = await one.listResources();
      const { contents } = await one.readResource({ uri: resources[0]!.uri });
      expect(contents[0]!.uri).toBe(resources[0]!.uri);
      const read = await one.readResource({ uri: 'demo://resource/dynamic/text/3' });
      expect(read.contents[0]).toMatchObject({ text: expect.stringContaining('3') });
      const { messages } = await one.getPrompt({ name: 'args-prompt', arguments: { city: 'Oslo' } });
      expect(JSON.stringify(messages)).toContain('Oslo');
      const completed = await one.complete({
        ref: { type: 'ref/prompt', name: 'completable-prompt' },
        argument: { name: 'department', value: 'S' },
      });
      expect(completed.completion.values).toEqual(['Sales', 'Support']);
      await expect(one.callTool({ name: 'no-such-tool', arguments: {} })).rejects.toMatchObject({ code: -32602 });
    },
  );

  it('server-filesystem reads and writes in its folder only', async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'rialto-files-')));
    writeFileSync(join(folder, 'a.txt'), 'hello');
    const roots = [{ uri: `file://${folder}` }];
    await register({ command: process.execPath, args: [script('server-filesystem'), folder], roots });
    const one = await client();
    expect(await textOf(one, 'list_allowed_directories')).toContain(folder);
    expect(await textOf(one, 'list_directory', { path: folder })).toContain('a.txt');
    expect(await textOf(one, 'read_text_file', { path: join(folder, 'a.txt') })).toBe('hello');
    await one.callTool({ name: 'write_file', arguments: { path: join(folder, 'b.txt'), content: 'there' } });
    expect(readFileSync(join(folder, 'b.txt'), 'utf8')).toBe('there');
    const outside = (await one.callTool({ name: 'read_text_file', arguments: { path: '/etc/hostname' } })) as any;
    expect([outside.isError, outside.content[0].text]).toEqual([true, expect.stringContaining('denied')]);
  });

  it('AE-08 server-everything notifies a subscribed resource', async () => {
    await register(await everything('stdio'));
    // The server notifies only the subscribed session, and a client that can be asked has its own session.
    const one = await client({ isAskable: false });
    const updated: string[] = [];
    one.setNotificationHandler('notifications/resources/updated', ({ params }) => void updated.push(params.uri));
    const uri = 'demo://resource/dynamic/text/1';
    await one.subscribeResource({ uri });
    await one.callTool({ name: 'toggle-subscriber-updates', arguments: {} });
    await eventually(
      () => Promise.resolve(updated),
      (all) => all.includes(uri),
    );
  });
});
