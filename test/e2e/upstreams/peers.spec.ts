import { setTimeout as wait } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { z } from 'zod';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { connectLegacySdk, modernRequest } from '../../support/clients/mcp-clients.js';
import { startFixture } from '../../support/clients/mcp-fixture.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const anything = z.looseObject({});
const everything = { sampling: {}, elicitation: { form: {} }, roots: {} };
interface Options {
  path?: string;
  mode?: 'legacy' | 'pinned';
  capabilities?: object;
}
type Answers = Partial<
  Record<'sampling/createMessage' | 'elicitation/create' | 'roots/list', (signal: AbortSignal) => unknown>
>;

describe('questions and notifications of MCP servers to the calling client', () => {
  let gateway: TestGateway;
  const open: { close: () => Promise<void> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    await Promise.all(open.splice(0).map((one) => one.close()));
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
  });
  afterAll(() => gateway.close());

  const fixture = async (eras: 'auto' | 'legacy' | 'modern' = 'auto', id = 'fix'): Promise<void> => {
    const one = await startFixture(eras);
    open.push(one);
    expect((await gateway.call('POST', '/api/mcp/servers', { id, url: one.url })).status).toBe(201);
  };
  /** Connects a client that answers questions and records them. */
  const client = async (
    answers: Answers,
    { path = '/mcp', mode = 'legacy', capabilities = everything }: Options = {},
  ) => {
    const negotiation = mode === 'pinned' ? { pin: '2026-07-28' } : mode;
    const one = new Client({ name: 'c', version: '1' }, { capabilities, versionNegotiation: { mode: negotiation } });
    const asked: string[] = [];
    const notified: { method: string; params?: any }[] = [];
    for (const [method, answer] of Object.entries(answers))
      one.setRequestHandler(method as 'roots/list', (_, { mcpReq: { signal } }) => {
        asked.push(method);
        return answer(signal) as never;
      });
    one.fallbackNotificationHandler = (notification) => Promise.resolve(void notified.push(notification));
    const headers = { authorization: `Bearer ${gateway.token}` };
    await one.connect(
      new StreamableHTTPClientTransport(new URL(`${gateway.url}${path}`), { requestInit: { headers } }),
    );
    open.push(one);
    const call = async (name: string, args: Record<string, unknown> = {}) => {
      const { content } = (await one.callTool({ name, arguments: args })) as { content: { text: string }[] };
      return content[0]!.text;
    };
    return { one, asked, told: notified, call };
  };
  const sampled = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' };
  const filled = { action: 'accept', content: { name: 'Ada', username: 'ada', email: 'a@b.c' } };
  const willing: Answers = {
    'sampling/createMessage': () => sampled,
    'elicitation/create': () => filled,
    'roots/list': () => ({ roots: [{ uri: 'file:///home/ada' }] }),
  };

  it.each([
    ['legacy', '/mcp', 'fix__'],
    ['auto', '/mcp', 'fix__'],
    ['auto', '/mcp/servers/fix', ''],
  ] as const)(
    'AE-11 AE-54 AE-63 a client of the 2025 era gets a question of a server (%s) at %s',
    async (eras, path, prefix) => {
      await fixture(eras);
      const { call, asked } = await client(willing, { path });
      expect(await call(`${prefix}test_sampling`, { prompt: 'capital?' })).toBe('LLM response: Paris');
      expect(await call(`${prefix}test_elicitation`, { message: 'who?' })).toContain('"username":"ada"');
      expect(asked).toEqual(['sampling/createMessage', 'elicitation/create']);
    },
  );

  it.each(['legacy', 'pinned'] as const)(
    'AE-12 AE-78 rounds of the 2026-07-28 revision reach a client: %s',
    async (mode) => {
      await fixture('modern');
      const { call, asked } = await client(willing, { mode });
      expect(await call('fix__test_input_required_result_elicitation')).toBe('Hello, Ada!');
      expect(await call('fix__test_input_required_result_list_roots')).toContain('file:///home/ada');
      expect(await call('fix__test_input_required_result_sampling')).toBe('Paris');
      expect(await call('fix__test_input_required_result_multiple_inputs')).toBe('all answered');
      expect(asked).toHaveLength(6);
      const { messages } = await (
        await client(willing, { mode })
      ).one.getPrompt({
        name: 'fix__test_input_required_result_prompt',
      });
      expect(messages[0]).toMatchObject({ content: { text: 'In the context of undefined' } });
    },
  );

  it('AE-33 AE-64 a client that cannot answer, refuses, or is denied by policy gets no question', async () => {
    await fixture('legacy');
    const sampling = { 'sampling/createMessage': () => sampled };
    const { call, asked } = await client(sampling, { capabilities: { sampling: {} } });
    await expect(call('fix__test_elicitation', { message: 'who?' })).rejects.toThrow(/not support.*elicitation/);
    expect(asked).toEqual([]);
    const unwilling = await client({
      'sampling/createMessage': () => {
        throw Object.assign(new Error('not today'), { code: -1 });
      },
    });
    await expect(unwilling.call('fix__test_sampling', { prompt: 'x' })).rejects.toThrow('not today');
    const text = 'forbid(principal, action == Action::"mcp_call", resource == Tool::"fix__sampling/createMessage");';
    const { body } = await gateway.call('POST', '/api/policies', { name: 'no sampling', text });
    const willingOne = await client(willing);
    await expect(willingOne.call('fix__test_sampling', { prompt: 'x' })).rejects.toThrow(/denied|not allowed|forb/i);
    expect(willingOne.asked).toEqual([]);
    expect(await willingOne.call('fix__test_simple_text')).toContain('simple text');
    await gateway.call('DELETE', `/api/policies/${body.id}`);
  });

  it('a client of revision 2026-07-28 without declared capabilities gets the missing ones in an HTTP 400', async () => {
    await fixture('modern');
    const { headers, body } = modernRequest('tools/call', { name: 'fix__test_missing_capability', arguments: {} }, 1);
    const response = await fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect([response.status, ((await response.json()) as any).error]).toMatchObject([
      400,
      { code: -32021, data: { requiredCapabilities: { sampling: {} } } },
    ]);
  });

  it.each(['legacy', 'modern'] as const)(
    'each client gets only the questions of its own concurrent calls, from a server with %s',
    async (eras) => {
      await fixture(eras);
      const tool = eras === 'legacy' ? 'fix__test_elicitation' : 'fix__test_input_required_result_elicitation';
      const clients = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          client({
            'elicitation/create': async () => {
              await wait(Math.random() * 100);
              return { action: 'accept', content: { name: `n${index}`, username: `n${index}`, email: 'e' } };
            },
          }),
        ),
      );
      const answers = await Promise.all(
        clients.flatMap(({ call }) => [1, 2, 3].map(() => call(tool, { message: 'x' }))),
      );
      for (const [index, answer] of answers.entries())
        expect(answer).toMatch(new RegExp(`\\bn${Math.floor(index / 3)}\\b`));
    },
  );

  it('an answer that arrives at another process reaches the process that asked', async () => {
    await fixture('legacy');
    const other = await startTestGateway({}, gateway);
    open.push(other);
    const { one } = await client(willing);
    const session = { 'mcp-session-id': (one.transport as StreamableHTTPClientTransport).sessionId! };
    const post = (url: string, body: unknown) =>
      fetch(`${url}/mcp`, {
        method: 'POST',
        headers: {
          ...session,
          authorization: `Bearer ${gateway.token}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...(body as object) }),
      });
    const params = { name: 'fix__test_sampling', arguments: { prompt: 'x' } };
    const reader = (await post(gateway.url, { id: 1, method: 'tools/call', params })).body!.getReader();
    const next = async () => JSON.parse(/data: (.*)\n/.exec(Buffer.from((await reader.read()).value).toString())![1]!);
    const question = await next();
    expect(question.method).toBe('sampling/createMessage');
    const forged = { id: `${question.id}x`, result: { ...sampled, content: { type: 'text', text: 'Rome' } } };
    for (const body of [forged, { id: 7, result: {} }, { id: question.id, result: sampled }])
      expect((await post(other.url, body)).status).toBe(202);
    expect((await next()).result.content[0].text).toBe('LLM response: Paris');
    await eventually(
      () => gateway.sql('select * from mcp_answers'),
      (rows) => rows.length === 0,
    );
  });

  it.each(['legacy', 'auto'] as const)('logs and progress reach the calling client (%s)', async (eras) => {
    await fixture(eras);
    const { one, told, call } = await client(willing);
    const logs = () => told.filter(({ method }) => method === 'notifications/message').map(({ params }) => params.data);
    await call('fix__test_tool_with_logging');
    expect(logs()).toEqual(['Tool execution started', 'Tool processing data', 'Tool execution completed']);
    await one.setLoggingLevel('error');
    await call('fix__test_tool_with_logging');
    expect(logs()).toHaveLength(3);
    const progress: unknown[] = [];
    await one.callTool(
      { name: 'fix__test_tool_with_progress', arguments: {} },
      { onprogress: ({ progress: at, total }) => progress.push([at, total]) },
    );
    expect(progress).toEqual([0, 50, 100].map((at) => [at, 100]));
    const level = await gateway.rpc('logging/setLevel', { level: 'loud' }, undefined, '/mcp');
    expect(level.error.code).toBe(-32601);
  });

  it('a server asks and notifies within limits, and withdraws its questions', async () => {
    const one = await TestUpstream.start();
    open.push(one);
    one.capabilities.logging = {};
    const roots = (server: any) => server.request({ method: 'roots/list' }, anything);
    one.add('curious', async (_args, _signal, server) => {
      const answers = await Promise.allSettled(Array.from({ length: 105 }, () => roots(server)));
      return {
        content: [{ type: 'text', text: answers.filter(({ status }) => status === 'fulfilled').length.toString() }],
      };
    });
    one.add('loud', async (_args, _signal, server) => {
      for (let count = 0; count < 15; count++)
        await server!.sendLoggingMessage({ level: 'error', data: 'x'.repeat(900_000) });
      await wait(1_000);
      return { content: [] };
    });
    let takenBack = 0;
    one.add('hasty', async (_args, _signal, server) => {
      const leave = new AbortController();
      const asking = server!.elicitInput(
        { message: 'x', requestedSchema: { type: 'object', properties: {} } },
        { signal: leave.signal },
      );
      await eventually(
        () => takenBack,
        (count) => count === -1,
      );
      leave.abort();
      await asking.catch(() => undefined);
      return { content: [] };
    });
    expect((await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: one.url })).status).toBe(201);
    const {
      call,
      told,
      one: caller,
    } = await client({
      ...willing,
      'elicitation/create': (signal) => {
        takenBack = -1;
        return new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            takenBack = 1;
            resolve({ action: 'cancel' });
          });
        });
      },
    });
    expect(await call('own__curious')).toBe('100');
    await caller.callTool({ name: 'own__loud', arguments: {} });
    expect(told.length).toBeGreaterThan(0);
    expect(told.length).toBeLessThan(12);
    await caller.callTool({ name: 'own__hasty', arguments: {} });
    await eventually(
      () => takenBack,
      (count) => count === 1,
    );
  });

  describe('watched resources', () => {
    const watchable = async (kind: 'sessions' | 'modern', id = 'watch') => {
      const one = await TestUpstream.start(kind);
      open.push(one);
      Object.assign(one.capabilities, { resources: { subscribe: true } });
      one.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x', name: 'x' }] }));
      if (kind === 'sessions')
        for (const act of ['subscribe', 'unsubscribe']) one.methods.set(`resources/${act}`, () => ({}));
      expect((await gateway.call('POST', '/api/mcp/servers', { id, url: one.url })).body).toMatchObject({
        counts: { resources: 1 },
      });
      return one;
    };

    /** Checks that changes are no longer delivered after the unsubscription is known everywhere. */
    const silent = async (one: TestUpstream, received: () => number): Promise<void> => {
      const more = async () => {
        const before = received();
        await one.tellUpdated('a://x');
        await wait(300);
        return received() - before;
      };
      await eventually(more, (count) => count === 0);
      expect(await more()).toBe(0);
    };
    const watchedBy = (legacy: any): unknown[] => {
      const received: unknown[] = [];
      legacy.fallbackNotificationHandler = ({ method, params }: any) =>
        Promise.resolve(void (method.endsWith('updated') && received.push(params)));
      return received;
    };

    it.each(['sessions', 'modern'] as const)('AE-08 a change at a server with %s is notified', async (kind) => {
      const one = await watchable(kind);
      const { client: legacy, standing, close } = await connectLegacySdk(`${gateway.url}/mcp`, gateway.token);
      open.push({ close });
      const received: any[] = [];
      legacy.fallbackNotificationHandler = ({ method, params }) =>
        Promise.resolve(void (method.endsWith('updated') && received.push(params)));
      await standing;
      await legacy.subscribeResource({ uri: 'a://x' });
      const until = async (count: number) => {
        await eventually(
          async () => {
            if (received.length < count) await one.tellUpdated('a://x');
            await wait(50);
            return received.length;
          },
          (length) => length >= count,
        );
      };
      await until(1);
      expect(received[0]).toMatchObject({ uri: 'a://x' });
      await expect(legacy.subscribeResource({ uri: '' })).rejects.toMatchObject({ code: -32602 });
      await legacy.unsubscribeResource({ uri: 'a://x' });
      await eventually(
        () => gateway.sql('select * from mcp_subscriptions'),
        (rows) => rows.length === 0,
      );
      await silent(one, () => received.length);
    });

    it('AE-08 a stream of the 2026-07-28 revision gets no change of the same URI at another server', async () => {
      const one = await watchable('sessions');
      const other = await watchable('sessions', 'zz');
      const door = await client({}, { mode: 'pinned', path: '/mcp/servers/watch' });
      const all = await client({}, { mode: 'pinned' });
      const others = await client({}, { mode: 'pinned', path: '/mcp/servers/zz' });
      for (const { one: modern } of [door, all, others]) await modern.listen({ resourceSubscriptions: ['a://x'] });
      const updates = ({ told }: typeof all) =>
        told.filter(({ method }) => method === 'notifications/resources/updated').length;
      const tell = (server: typeof one, until: typeof all) =>
        eventually(
          async () => {
            await server.tellUpdated('a://x');
            await wait(50);
            return updates(until);
          },
          (count) => count > 0,
        );
      await tell(other, others);
      await wait(300);
      expect([updates(door), updates(all)]).toEqual([0, 0]);
      await tell(one, door);
      await tell(one, all);
    });

    it('AE-08 a stream of revision 2026-07-28 gets changes of named resources that its caller may read', async () => {
      const one = await watchable('sessions');
      const { one: modern, told } = await client({}, { mode: 'pinned' });
      await modern.listen({ resourceSubscriptions: ['a://x'] });
      await eventually(
        async () => {
          await one.tellUpdated('a://x');
          await wait(50);
          return told;
        },
        (all) =>
          all.some(({ method, params }) => method === 'notifications/resources/updated' && params.uri === 'a://x'),
      );
      const { client: legacy, standing, close } = await connectLegacySdk(`${gateway.url}/mcp`, gateway.token);
      open.push({ close });
      await standing;
      await legacy.subscribeResource({ uri: 'a://x' });
      const received = watchedBy(legacy);
      await eventually(
        async () => {
          await one.tellUpdated('a://x');
          await wait(50);
          return received.length;
        },
        (count) => count > 0,
      );
      const text = 'forbid(principal, action == Action::"mcp_read", resource == Resource::"a://x");';
      const { body } = await gateway.call('POST', '/api/policies', { name: 'no reading', text });
      await silent(one, () => told.length + received.length);
      await expect(modern.listen({ resourceSubscriptions: ['a://x'] })).rejects.toThrow();
      await gateway.call('DELETE', `/api/policies/${body.id}`);
    });
  });
});
