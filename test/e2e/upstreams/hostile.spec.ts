import { readdirSync, readFileSync } from 'node:fs';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { clientKinds, connectMcp } from '../../support/clients/mcp-clients.js';
import { eventStream as stream, json, startHostile, type Reply } from '../../support/stubs/hostile-upstream.js';

/** An MCP server that starts in a fraction of the time of Node. */
const shellServer = `while read -r line; do
  id=\${line#*'"id":'}
  id=\${id%%[,\\}]*}
  case $line in
    *'"initialize"'*)
      server='"serverInfo":{"name":"sh","version":"1"}'
      answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'$server'}';;
    *'"tools/list"'*) answer='"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}';;
    *'"tools/call"'*) answer='"result":{"content":[{"type":"text","text":"back"}]}';;
    *'"notifications/'*) continue;;
    *) answer='"error":{"code":-32601,"message":"no such method"}';;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\\n' "$id" "$answer"
done`;

describe('hostile MCP servers', () => {
  let gateway: TestGateway;
  const open: { close: () => Promise<unknown> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => gateway.close());

  const inputSchema = { type: 'object' };
  const hostile = async (tools: unknown[] | string, calls: Record<string, Reply> = {}, more: object = {}) => {
    const one = await startHostile(tools, calls);
    open.push(one);
    return gateway.call('POST', '/api/mcp/servers', { id: 'bad', url: one.url, ...more });
  };
  const call = (name: string) => gateway.rpc('tools/call', { name: `bad__${name}`, arguments: {} });
  const listed = async (): Promise<any[]> => (await gateway.rpc('tools/list')).result.tools;

  const big = 'x'.repeat(12_000_000);
  const ways: Record<string, Reply> = {
    huge: (id, response) => json(response, { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: big }] } }),
    hugeEvent: (id, response) =>
      void stream(response).end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { content: [], big } })}\n\n`),
    endless: (_id, response) => {
      stream(response);
      const more = (): void => {
        while (!response.destroyed && response.write(`: ${'x'.repeat(65_536)}\n`));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    },
    endlessNotices: (_id, response) => {
      stream(response);
      const params = { level: 'info', data: 'x'.repeat(2_000) };
      const notice = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params })}\n\n`;
      const more = (): void => {
        while (!response.destroyed && response.write(notice));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    },
    wrongId: (_id, response) => json(response, { jsonrpc: '2.0', id: 'another', result: { content: [] } }),
    nonsense: (_id, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc": '),
    page: (_id, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>canary</html>'),
    deep: (id, response) => {
      const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"structuredContent":{"a":${nested}}}}`,
      );
    },
    noResult: (id, response) => json(response, { jsonrpc: '2.0', id, result: 'ok' }),
    noContent: (id, response) => json(response, { jsonrpc: '2.0', id, result: { content: 'text' } }),
    hangUp: (_id, response) => void response.destroy(),
    silent: () => undefined,
    fine: (id, response) =>
      json(response, { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'fine' }] } }),
  };

  it('AE-32 for any answer its caller gets a typed error, others their answers, and nothing is left over', async () => {
    const names = Object.keys(ways);
    await hostile(
      names.map((name) => ({ name, inputSchema })),
      ways,
      { timeoutMs: 2_000 },
    );
    await call('fine');
    const before = process.memoryUsage.rss();
    const bad = names.filter((name) => name !== 'fine');
    for (const name of bad) {
      const { error } = await call(name);
      expect([name, error?.data?.code]).toEqual([
        name,
        expect.stringMatching(/^remote_(timeout|transport|invalid_response)$/),
      ]);
      await eventually(
        () => call('fine'),
        ({ result }) => result?.content[0].text === 'fine',
      );
    }
    const answers = await Promise.all([...bad, ...Array<string>(20).fill('fine')].map((name) => call(name)));
    expect(
      answers.slice(bad.length).filter(({ result, error }) => result ?? error?.data?.code === 'unavailable'),
    ).toHaveLength(20);
    expect(process.memoryUsage.rss() - before).toBeLessThan(400 * 1_048_576);
  });

  it('AE-32 an invalid response ends its call at once, as a body or on a stream; other messages do not', async () => {
    const event = (message: object): string => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
    const answers = { text: { result: 'text' }, nothing: { result: null }, empty: {} };
    const calls: Record<string, Reply> = {
      odd: (id, response) => {
        const more = event({ method: 'notifications/message', params: 'odd' });
        stream(response).end(`${more}${event({ id, result: { content: [{ type: 'text', text: 'fine' }] } })}`);
      },
    };
    for (const [name, answer] of Object.entries(answers)) {
      calls[`${name}Body`] = (id, response) => json(response, { jsonrpc: '2.0', id, ...answer });
      calls[`${name}Event`] = (id, response) => void stream(response).end(event({ id, ...answer }));
      calls[`${name}Open`] = (id, response) => void stream(response).write(`id: 1\n${event({ id, ...answer })}`);
    }
    const names = Object.keys(calls);
    await hostile(
      names.map((name) => ({ name, inputSchema })),
      calls,
      { timeoutMs: 60_000 },
    );
    for (const name of names.filter((one) => one !== 'odd')) {
      const { error } = await call(name);
      expect([name, error]).toMatchObject([name, { code: -32_203, data: { code: 'remote_invalid_response' } }]);
      expect((await call('odd')).result).toEqual({ content: [{ type: 'text', text: 'fine' }] });
    }
  });

  it('names that collide, imitate others or look equal are listed once, under their server, or never', async () => {
    const echo = { name: 'echo', description: 'first', inputSchema };
    const { status } = await hostile([
      echo,
      { ...echo, description: 'second' },
      { name: 'list_agents', inputSchema },
      { name: 'good__echo', inputSchema },
      { name: 'x'.repeat(300), inputSchema },
      { name: '', inputSchema },
      { name: 7, inputSchema },
      { name: 'no-schema' },
      { name: 'list', inputSchema: [] },
      null,
      'text',
    ]);
    expect(status).toBe(201);
    const own = (await listed()).filter(({ _meta }) => _meta?.['dev.rialto/tool']?.server === 'bad');
    expect(own.map(({ name }) => name).sort()).toEqual(['bad__echo', 'bad__good__echo', 'bad__list_agents']);
    expect(own.find(({ name }) => name === 'bad__echo').description).toBe('[MCP:h] first');
  });

  it('one tool that no client can parse does not hide the others (C25)', async () => {
    const { body } = await hostile([
      { name: 'good', inputSchema },
      { name: 'empty', inputSchema: { type: 'object', properties: [] } },
      { name: 'nothing', inputSchema: { type: 'object', properties: null, required: null } },
      { name: 'untyped', inputSchema: { anyOf: [{ required: ['a'] }] } },
      { name: 'odd', inputSchema, title: null, annotations: { readOnlyHint: 'yes' }, icons: 'x', _meta: 'y' },
      { name: 'result', inputSchema, outputSchema: { type: ['null', 'array'] } },
      { name: 'reference', inputSchema, outputSchema: { type: 'object', properties: { a: { $ref: '#/none' } } } },
      { name: 'list', inputSchema: { type: 'array' } },
    ]);
    expect(body.problems.filter(({ effect }: any) => effect === 'left out')).toEqual([
      { list: 'tools', name: 'list', problem: expect.stringContaining('type is not "object"'), effect: 'left out' },
    ]);
    const names = body.tools.map(({ name }: any) => `bad__${name}`);
    expect(names).toHaveLength(7);
    for (const kind of clientKinds)
      for (const path of ['/mcp', '/mcp/servers/bad']) {
        const client = await connectMcp(kind, `${gateway.url}${path}`, gateway.token);
        const { tools } = await client.listTools();
        expect([kind, path, tools.filter(({ name }) => /bad__|^[a-z]+$/.test(name)).length]).toEqual([kind, path, 7]);
        await client.close();
      }
  });

  it('expensive schemas are refused or forwarded unchanged; none is expanded', async () => {
    const deep = (levels: number): object => {
      let schema: object = { type: 'object' };
      for (let level = 0; level < levels; level++) schema = { type: 'object', properties: { a: schema } };
      return schema;
    };
    const circular = { type: 'object', $defs: { a: { $ref: '#/$defs/a' } }, properties: { a: { $ref: '#/$defs/a' } } };
    const backtracking = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } };
    const outside = { type: 'object', properties: { a: { $ref: 'http://169.254.169.254/latest' } } };
    const answer: Reply = (id, response) => json(response, { jsonrpc: '2.0', id, result: { content: [] } });
    const tools = { circular, backtracking, outside, deep: deep(100) };
    await hostile(
      Object.entries(tools).map(([name, schema]) => ({ name, inputSchema: schema })),
      Object.fromEntries(Object.keys(tools).map((name) => [name, answer])),
    );
    expect(await listed()).toHaveLength(Object.keys(tools).length);
    for (const name of Object.keys(tools)) {
      const params = { name: `bad__${name}`, arguments: { a: `${'a'.repeat(50)}!` } };
      expect((await gateway.rpc('tools/call', params)).result).toEqual({ content: [] });
    }
    await gateway.call('DELETE', '/api/mcp/servers/bad');
    const levels = 20_000;
    const nested = `${'{"type":"object","properties":{"a":'.repeat(levels)}{}${'}}'.repeat(levels)}`;
    const bomb = await hostile(`[{"name":"bomb","inputSchema":${nested}}]`);
    expect([bomb.status, bomb.body.tools]).toEqual([201, []]);
    expect(bomb.body.problems).toMatchObject([{ list: 'tools', name: 'bomb', effect: 'left out' }]);
    await gateway.call('DELETE', '/api/mcp/servers/bad');
    const wide = await hostile([{ name: 'wide', inputSchema: { type: 'object', description: big } }]);
    expect([wide.status, wide.body.code]).toEqual([502, expect.stringMatching(/^remote_/)]);
  });

  it('AE-44 two hundred programs that were killed leave no process behind', async () => {
    const mark = `leak-${process.pid}-${Date.now()}`;
    const alive = (): number[] =>
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .filter((pid) => {
          try {
            return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(mark);
          } catch {
            return false;
          }
        });
    const place = { id: 'own', command: '/bin/sh', args: ['-c', shellServer, mark] };
    expect((await gateway.call('POST', '/api/mcp/servers', place)).status).toBe(201);
    for (let kill = 0; kill < 200; kill++) {
      expect((await gateway.call('POST', '/api/mcp/servers/own/refresh')).status).toBe(200);
      for (const pid of alive()) process.kill(pid, 'SIGKILL');
    }
    await eventually(
      () => gateway.rpc('tools/call', { name: 'own__echo', arguments: {} }),
      ({ result }) => result?.content[0].text === 'back',
    );
    // One process, with the one that starts it.
    expect(alive().length).toBeLessThanOrEqual(2);
    await gateway.call('DELETE', '/api/mcp/servers/own');
    await eventually(
      () => Promise.resolve(alive()),
      (pids) => pids.length === 0,
    );
  });
});
