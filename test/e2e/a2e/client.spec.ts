import { A2EClient, A2EClientError, type A2EClientOptions, type Push } from '../../../src/a2e/client.js';
import { unregisterAll } from '../../support/clients/a2e.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { library } from '../../support/gateway/library.js';
import { TestUpstream } from '../../support/stubs/upstream.js';
import { z } from 'zod';

const paris = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' };

describe('rialto/a2e', () => {
  let gateway: TestGateway;
  const open: { close: () => Promise<unknown> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
    await unregisterAll(gateway);
  });
  afterAll(() => gateway.close());

  const clientOf = (options: Partial<A2EClientOptions> = {}, url = gateway.url): A2EClient => {
    const client = new A2EClient(url, { token: gateway.token, ...options });
    open.push(client);
    return client;
  };
  const upstream = async (
    set: (one: TestUpstream) => void = () => undefined,
    kind: 'sessions' | 'websocket' = 'sessions',
  ) => {
    const one = await TestUpstream.start(kind);
    open.push(one);
    set(one);
    return one;
  };
  const failure = async (work: Promise<unknown>): Promise<A2EClientError> => {
    const error: unknown = await work.then(() => new Error('the work did not fail')).catch((reason: unknown) => reason);
    if (!(error instanceof A2EClientError)) throw error;
    return error;
  };

  it.each(['websocket', 'post'] as const)(
    'AE-71 AE-72 AE-74 the API of the reference works over %s',
    async (transport) => {
      const client = clientOf({ transport });
      const books = await library('sessions', 'a://x', ['one']);
      open.push(books);
      expect(await client.registerServer({ server_id: 'a', url: books.url, timeout: 5 })).toMatchObject({
        server_id: 'a',
        status: 'ready',
        tool_count: 1,
      });
      await client.registerServer({ server_id: 'b', url: (await upstream()).url });
      expect((await client.listServers()).map(({ server_id }) => server_id)).toEqual(['a', 'b']);
      expect((await client.listServers({ status: 'error' })).length).toBe(0);
      expect((await client.listTools('b')).map(({ name, input_schema }) => [name, input_schema.type])).toEqual([
        ['echo', 'object'],
      ]);
      expect(await client.findTool('echo')).toEqual(['a', 'b']);
      expect(await client.callTool('echo', { text: 'hi' })).toMatchObject({
        server_id: 'a',
        success: true,
        text: 'hi',
      });
      expect(await client.callTool('echo', { text: 'hi' }, { serverId: 'b' })).toMatchObject({ server_id: 'b' });
      const turns = [1, 2].map(() => client.callTool('echo', { text: 'x' }, { strategy: 'round-robin' }));
      expect(new Set((await Promise.all(turns)).map(({ server_id }) => server_id))).toEqual(new Set(['a', 'b']));
      expect((await client.listResources()).map(({ uri }) => uri)).toEqual(['a://x/one']);
      expect((await client.readResource('a://x/one'))[0]!.text).toContain('a://x says');
      expect((await client.listPrompts('a')).map(({ name }) => name)).toEqual(['greet']);
      expect((await client.getPrompt('greet', { who: 'Ada' })).messages).toHaveLength(1);
      await client.unregisterServer('b');
      expect(await client.findTool('echo')).toEqual(['a']);
    },
  );

  it('AE-74 servers of other clients are found too', async () => {
    const client = clientOf();
    await client.registerServer({ server_id: 'a', url: (await upstream()).url });
    expect(await client.findTool('echo')).toEqual(['a']);
    await gateway.call('POST', '/api/mcp/servers', { id: 'b', url: (await upstream()).url });
    await eventually(
      () => client.findTool('echo'),
      (servers) => servers.join() === 'a,b',
    );
  });

  it('AE-71 a tool API gets the tool of the chosen server', async () => {
    const client = clientOf();
    await client.registerServer({ server_id: 'a', url: (await upstream()).url });
    await client.registerServer({ server_id: 'b', url: (await upstream()).url });
    const toolApi = { callTool: (name: string, args: object) => Promise.resolve({ name, args }) };
    const call = () => client.callTool('echo', { text: 'x' }, { strategy: 'round-robin', toolApi });
    expect([await call(), await call()]).toEqual(
      ['a', 'b'].map((id) => ({ name: `${id}__echo`, args: { text: 'x' } })),
    );
  });

  it('AE-73 AE-75 impossible requests are refused by name, and errors of the gateway are passed on', async () => {
    const client = clientOf();
    expect(await failure(client.callTool('nothing'))).toMatchObject({
      code: 'mcp_tool_not_found',
      message: 'No server found for tool: nothing',
    });
    const guess = await failure(client.callTool('echo', {}, { strategy: 'guess' }));
    expect(guess.message).toBe('unknown strategy "guess"; use one of first, round-robin, least-loaded');
    expect(await failure(client.unregisterServer('nobody'))).toMatchObject({
      code: 'mcp_server_not_found',
      retryable: false,
    });
    for (const transport of ['websocket', 'post'] as const)
      expect(await failure(clientOf({ transport, token: 'rlt_no' }).listServers())).toBeInstanceOf(A2EClientError);
    expect((await failure(clientOf({ transport: 'post', token: 'rlt_no' }).listServers())).code).toBe('a2e_refused');
    expect((await failure(clientOf({}, 'http://127.0.0.1:1').listServers())).code).toBe('a2e_connection');
    expect(() => new A2EClient('nowhere', { token: 'x' })).toThrow(A2EClientError);
    expect((await failure(clientOf({ transport: 'post' }).subscribeResource('a://x'))).code).toBe(
      'mcp_capability_missing',
    );
  });

  it.each(['websocket', 'post'] as const)('AE-75 no request waits longer than its timeout (%s)', async (transport) => {
    const client = clientOf({ transport });
    const slow = await upstream((one) => one.add('slow', () => new Promise(() => {})));
    await client.registerServer({ server_id: 'a', url: slow.url });
    expect(await failure(client.callTool('slow', {}, { timeoutMs: 300 }))).toMatchObject({
      code: 'a2e_timeout',
      retryable: true,
    });
    const hanging = await upstream();
    hanging.capabilities.prompts = {};
    hanging.methods.set('prompts/list', () => new Promise(() => {}));
    expect((await failure(client.registerServer({ server_id: 'b', url: hanging.url }, { timeoutMs: 400 }))).code).toBe(
      'a2e_timeout',
    );
  });

  it('AE-08 AE-11 AE-33 AE-78 gets pushes and questions with handlers that were set before it connects', async () => {
    const asking = (method: string) => async (_: unknown, _signal: unknown, server: any) => {
      const outcome = await server
        .request({ method, params: {} }, z.looseObject({}))
        .catch((error: Error) => error.message);
      return { content: [{ type: 'text', text: JSON.stringify(outcome) }] };
    };
    const one = await upstream((server) => {
      server.add('sample', asking('sampling/createMessage'));
      server.add('roots', asking('roots/list'));
      Object.assign(server.capabilities, { resources: { subscribe: true } });
      server.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x', name: 'x' }] }));
      for (const act of ['subscribe', 'unsubscribe']) server.methods.set(`resources/${act}`, () => ({}));
    });
    const client = clientOf();
    const pushes: Push[] = [];
    client.onPush((push) => pushes.push(push));
    client.onSampling(({ server_id, params }) => {
      if (Object.keys(params).length > 0) throw new Error('too much');
      return { ...paris, model: server_id! };
    });
    client.onRoots(() => {
      throw new Error('none of your business');
    });
    await client.registerServer({ server_id: 'a', url: one.url });
    expect((await client.callTool('sample')).text).toContain('"model":"a"');
    expect((await client.callTool('roots')).text).toContain('none of your business');
    await client.subscribeResource('a://x');
    await eventually(
      async () => {
        await one.tellUpdated('a://x');
        return pushes;
      },
      (all) => all.some(({ method, server_id }) => method === 'notifications/resources/updated' && server_id === 'a'),
    );
    const silent = clientOf();
    expect((await silent.callTool('sample')).text).toContain('no client can be asked');
  });

  it('(E4) answers are not messages in progress: all calls are answered late, and the next ones too', async () => {
    const one = await upstream(
      (server) =>
        server.add('sample', async (_args, _signal, asked: any) => {
          const { model } = await asked.request({ method: 'sampling/createMessage', params: {} }, z.looseObject({}));
          return { content: [{ type: 'text', text: model }] };
        }),
      'websocket',
    );
    const client = clientOf();
    let waiting: (() => void)[] = [];
    client.onSampling(async () => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return paris;
    });
    await client.registerServer({ server_id: 'a', url: one.url });
    for (const round of [1, 2]) {
      const calls = Array.from({ length: 64 }, () =>
        client.callTool('sample', {}, { serverId: 'a', timeoutMs: 100_000 }),
      );
      await eventually(
        () => waiting.length,
        (count) => count === 64,
      );
      for (const answer of waiting) answer();
      waiting = [];
      expect([round, (await Promise.all(calls)).map(({ text }) => text)]).toEqual([round, calls.map(() => 'm')]);
    }
  });

  it('(E10) a refusal fails the call of a 2026-07-28 server with its own code', async () => {
    const question = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } };
    const one = await TestUpstream.start('modern');
    open.push(one);
    one.add('ask', () => Promise.resolve({ resultType: 'input_required', inputRequests: { q: question } } as never));
    const client = clientOf();
    client.onSampling(() => {
      throw new Error('no thanks');
    });
    await client.registerServer({ server_id: 'a', url: one.url });
    expect(await failure(client.callTool('ask'))).toMatchObject({ code: 'mcp_sampling_refused', message: 'no thanks' });
  });

  it.each(['websocket', 'post'] as const)(
    'AE-38 a notification reaches its server, and the caller does not wait for more (%s)',
    async (transport) => {
      const one = await upstream();
      const client = clientOf({ transport });
      await client.registerServer({ server_id: 'a', url: one.url });
      await client.notify('a', 'notifications/custom', { n: 1 });
      await eventually(
        () => one.told,
        (told) => told.some(({ method, params }) => method === 'notifications/custom' && params?.n === 1),
      );
      if (transport === 'post')
        for (const method of ['notifications/initialized', 'tools/call'])
          expect((await failure(client.notify('a', method))).code).toBe('mcp_protocol_error');
    },
  );

  it('a lost connection is reported, and the next request opens it again, with its subscriptions', async () => {
    const second = await startTestGateway({}, gateway);
    const { port } = new URL(second.url);
    const client = clientOf({}, second.url);
    let lost = 0;
    client.onClose(() => lost++);
    expect(await client.listServers()).toEqual([]);
    await second.close();
    await eventually(
      () => lost,
      (count) => count === 1,
    );
    expect((await failure(client.listServers())).code).toBe('a2e_connection');
    const third = await startTestGateway({ PORT: port }, gateway);
    expect(await client.listServers()).toEqual([]);
    await third.close();
  });
});
