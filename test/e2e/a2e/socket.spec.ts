import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { connectAgent, message, poster, unregisterAll, type SocketAgent } from '../../support/clients/a2e.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startFixture } from '../../support/clients/mcp-fixture.js';
import { TestUpstream, type UpstreamKind } from '../../support/stubs/upstream.js';

const paris = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' };
const anything = z.looseObject({});

describe('A2E on a WebSocket', () => {
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

  const { say } = poster(() => gateway);
  const agent = async (options?: Parameters<typeof connectAgent>[1]): Promise<SocketAgent> => {
    const one = await connectAgent(gateway, options);
    open.push(one);
    return one;
  };
  const started = async (kind: UpstreamKind = 'sessions', set?: (one: TestUpstream) => void) => {
    const one = await TestUpstream.start(kind);
    open.push(one);
    set?.(one);
    return one;
  };
  const registered = async (one: { url: string }, id = 'own') => {
    const { status } = await gateway.call('POST', '/api/mcp/servers', { id, url: one.url });
    expect(status).toBe(201);
  };
  /** Builds a tool that makes its server send a request to the caller. */
  const asking =
    (method: string, params: object = {}) =>
    async (_: unknown, _signal: unknown, server: any) => {
      const outcome = await server.request({ method, params }, anything).then(
        (value: unknown) => ({ value }),
        ({ code, message: text }: { code: number; message: string }) => ({ code, text }),
      );
      return { content: [{ type: 'text', text: JSON.stringify(outcome) }] };
    };
  const pushed = (one: SocketAgent, method: string) =>
    eventually(
      () => one.pushes.filter((push) => push.method === method),
      (found) => found.length > 0,
    );

  describe('questions of servers', () => {
    it('AE-11 AE-54 AE-63 sampling goes to the agent that called, and its answer to the server', async () => {
      const fixture = await startFixture('legacy');
      open.push(fixture);
      await registered(fixture, 'fix');
      const one = await agent({ answer: ({ type }) => (type === 'mcp/sampling/req' ? { result: paris } : undefined) });
      const other = await agent({ answer: () => ({ result: { ...paris, content: { type: 'text', text: 'Rome' } } }) });
      const reply = await one.say('mcp/call_tool', { tool: 'fix__test_sampling', arguments: { prompt: 'capital?' } });
      expect(reply).toMatchObject({ ok: true, success: true, text: 'LLM response: Paris' });
      expect(one.asked).toMatchObject([
        {
          type: 'mcp/sampling/req',
          version: '1.0',
          server_id: 'fix',
          params: { messages: [{ role: 'user', content: { type: 'text', text: 'capital?' } }] },
        },
      ]);
      expect(other.asked).toEqual([]);
    });

    it.each(['mcp/sampling/resp', 'mcp/sample/resp'])('AE-14 an answer may have the type %s', async (type) => {
      await registered(await started('websocket', (one) => one.add('ask', asking('sampling/createMessage'))));
      const one = await agent({ answer: () => ({ type, ...paris }) });
      const { text } = await one.say('mcp/call_tool', { tool: 'own__ask' });
      expect(JSON.parse(text)).toMatchObject({ value: paris });
    });

    it('AE-33 AE-64 a refusal of the agent is -32000 to the server, and audited with its code', async () => {
      await registered(await started('websocket', (one) => one.add('ask', asking('sampling/createMessage'))));
      const error = { code: 'mcp_sampling_refused', message: 'not today' };
      const one = await agent({ answer: () => ({ ok: false, error }) });
      const { text } = await one.say('mcp/call_tool', { tool: 'own__ask' });
      expect(JSON.parse(text)).toMatchObject({ code: -32000, text: expect.stringContaining('not today') });
      await eventually(
        () => gateway.sql("select 1 from audit_events where event->>'error' = 'mcp_sampling_refused'"),
        (rows) => rows.length > 0,
      );
    });

    it('AE-64 an agent without the capability is not asked, and an invalid answer does not count', async () => {
      await registered(await started('websocket', (one) => one.add('ask', asking('sampling/createMessage'))));
      const deaf = await agent({ query: '?capabilities=roots', answer: () => ({ result: paris }) });
      expect(JSON.parse((await deaf.say('mcp/call_tool', { tool: 'own__ask' })).text)).toMatchObject({ code: -32000 });
      expect(deaf.asked).toEqual([]);
      const odd = await agent({ answer: () => ({ result: { nothing: 1 } }) });
      expect(JSON.parse((await odd.say('mcp/call_tool', { tool: 'own__ask' })).text)).toMatchObject({ code: -32000 });
      expect((await say('mcp/call_tool', { tool: 'own__ask' })).text).toContain('-32000');
    });

    it('AE-12 AE-78 roots are requested from the agent, in either spelling, and reach the server', async () => {
      await registered(await started('websocket', (one) => one.add('ask', asking('roots/list'))));
      for (const type of ['mcp/roots/list/resp', 'mcp/root/list/resp']) {
        const one = await agent({ answer: () => ({ type, roots: [{ uri: 'file:///home/ada' }] }) });
        const { text } = await one.say('mcp/call_tool', { tool: 'own__ask' });
        expect(JSON.parse(text)).toMatchObject({ value: { roots: [{ uri: 'file:///home/ada' }] } });
        expect(one.asked).toMatchObject([{ type: 'mcp/roots/list/req', server_id: 'own' }]);
      }
    });

    it('AE-66 a server that sends another request gets "method not found"', async () => {
      await registered(await started('websocket', (one) => one.add('ask', asking('made/up'))));
      const one = await agent();
      expect(JSON.parse((await one.say('mcp/call_tool', { tool: 'own__ask' })).text)).toMatchObject({ code: -32601 });
    });

    it('a question is withdrawn when its call ends, and an answer without a question is refused', async () => {
      const one = await agent();
      await registered(
        await started('websocket', (upstream) =>
          upstream.add('leave', async (_args, _signal, server) => {
            void (server as any)
              .request({ method: 'sampling/createMessage', params: {} }, anything)
              .catch(() => undefined);
            await eventually(
              () => one.asked,
              ({ length }) => length > 0,
            );
            return { content: [] };
          }),
        ),
      );
      await one.say('mcp/call_tool', { tool: 'own__leave' });
      const [push] = await pushed(one, 'notifications/cancelled');
      expect(push!.params.requestId).toBe(one.asked[0]!.id);
      expect(await one.say('mcp/sampling/resp', { req_id: one.asked[0]!.id, ...paris })).toMatchObject({
        ok: false,
        error: { code: 'mcp_protocol_error', message: expect.stringContaining('no question waits for this answer') },
      });
    });
  });

  describe('pushes', () => {
    it.each(['sessions', 'websocket'] as const)(
      'AE-05 AE-60 AE-62 notifications of a server (%s) are pushed to agents that may see it',
      async (kind) => {
        const one = await started(kind);
        const listener = await agent();
        const stranger = await connectAgent({ ...gateway, token: await gateway.tokenOf('globex', 'gina', 'admin') });
        open.push(stranger);
        await registered(one);
        await pushed(listener, 'notifications/servers/changed');
        await eventually(
          async () => (await say('mcp/server/list/req')).servers[0].status,
          (status) => status === 'ready',
        );
        // Notifications before the server's stream to the gateway is open are lost.
        const [weather] = await eventually(
          async () => {
            await one.say('notifications/weather', { sky: 'clear' });
            await wait(100);
            return listener.pushes.filter(({ method }) => method === 'notifications/weather');
          },
          ({ length }) => length > 0,
        );
        expect(weather).toMatchObject({
          type: 'mcp/server/push',
          version: '1.0',
          server_id: 'own',
          params: { sky: 'clear' },
        });
        one.add('more', () => ({ content: [] }));
        await one.tellChanged();
        expect(await pushed(listener, 'notifications/tools/list_changed')).toMatchObject([{ server_id: 'own' }]);
        await eventually(
          async () => (await say('mcp/server/list/req')).servers[0].tool_count,
          (count) => count === 2,
        );
        expect(stranger.pushes).toEqual([]);
      },
    );

    it('AE-62 notifications of a server during a call are pushed only to the calling agent', async () => {
      await registered(
        await started('websocket', (one) =>
          one.add('talk', async (_args, _signal, server) => {
            await (server as any).notification({ method: 'notifications/only/you', params: { n: 1 } });
            return { content: [] };
          }),
        ),
      );
      const [one, other] = [await agent(), await agent()];
      await one.say('mcp/call_tool', { tool: 'own__talk' });
      expect(await pushed(one, 'notifications/only/you')).toMatchObject([{ server_id: 'own', params: { n: 1 } }]);
      expect(other.pushes.filter(({ method }) => method === 'notifications/only/you')).toEqual([]);
    });

    it.each(['sessions', 'modern'] as const)('AE-08 a change of a watched resource is pushed (%s)', async (kind) => {
      const library = await started(kind, (one) => {
        Object.assign(one.capabilities, { resources: { subscribe: true } });
        one.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x', name: 'x' }] }));
        if (kind === 'sessions')
          for (const act of ['subscribe', 'unsubscribe']) one.methods.set(`resources/${act}`, () => ({}));
      });
      await registered(library);
      const [one, other] = [await agent(), await agent()];
      expect(await one.say('mcp/resource/subscribe/req', { uri: 'a://x' })).toMatchObject({
        type: 'mcp/resource/subscribe/resp',
        ok: true,
        uri: 'a://x',
        server_id: 'own',
        subscribed: true,
      });
      const updated = () => one.pushes.filter(({ method }) => method === 'notifications/resources/updated');
      await eventually(
        async () => {
          await library.tellUpdated('a://x');
          return updated().length;
        },
        (count) => count > 0,
      );
      expect(updated()[0]).toMatchObject({ server_id: 'own', params: { uri: 'a://x' } });
      expect(other.pushes.filter(({ method }) => method.includes('updated'))).toEqual([]);
      expect(await one.say('mcp/resource/subscribe/req', { uri: 'a://x', subscribe: false })).toMatchObject({
        ok: true,
        subscribed: false,
      });
      await new Promise((resolve) => setTimeout(resolve, 200));
      const before = updated().length;
      await library.tellUpdated('a://x');
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(updated()).toHaveLength(before);
    });

    it('AE-08 AE-34 a caller by POST cannot receive pushes, and some servers cannot notify changes', async () => {
      await registered(
        await started('sessions', (one) => {
          Object.assign(one.capabilities, { resources: {} });
          one.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x', name: 'x' }] }));
        }),
      );
      const refused = { ok: false, error: { code: 'mcp_capability_missing', retryable: false } };
      expect(await say('mcp/resource/subscribe/req', { uri: 'a://x' })).toMatchObject(refused);
      expect(await (await agent()).say('mcp/resource/subscribe/req', { uri: 'a://x' })).toMatchObject(refused);
    });
  });

  it('AE-13 AE-70 every message type works on the wire, and each is audited', async () => {
    const one = await started('websocket', (server) => {
      server.add('sample', asking('sampling/createMessage'));
      server.add('roots', asking('roots/list'));
      Object.assign(server.capabilities, { resources: { subscribe: true }, prompts: {} });
      server.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x', name: 'x' }] }));
      server.methods.set('resources/templates/list', () => ({ resourceTemplates: [] }));
      server.methods.set('resources/read', ({ uri }) => ({ contents: [{ uri, text: 'x' }] }));
      server.methods.set('resources/subscribe', () => ({}));
      server.methods.set('prompts/list', () => ({ prompts: [{ name: 'greet' }] }));
      server.methods.set('prompts/get', () => ({ messages: [] }));
    });
    const listener = await agent({
      answer: ({ type }) => (type === 'mcp/sampling/req' ? { result: paris } : { roots: [] }),
    });
    for (const [type, payload] of [
      ['mcp/server/register/req', { server_id: 'all', url: one.url }],
      ['mcp/server/list/req', {}],
      ['mcp/resource/list/req', {}],
      ['mcp/resource/read/req', { uri: 'a://x' }],
      ['mcp/resource/subscribe/req', { uri: 'a://x' }],
      ['mcp/prompt/list/req', {}],
      ['mcp/prompt/get/req', { name: 'greet' }],
      ['mcp/call_tool', { tool: 'all__sample' }],
      ['mcp/call_tool', { tool: 'all__roots' }],
      ['mcp/server/unregister/req', { server_id: 'all' }],
    ] as const)
      expect(await listener.say(type, payload)).toMatchObject({ type: `${type.replace('/req', '')}/resp`, ok: true });
    await pushed(listener, 'notifications/servers/changed');
    const exchanges = ['server/register', 'server/list', 'server/unregister', 'resource/list', 'resource/read'];
    const more = ['resource/subscribe', 'prompt/list', 'prompt/get', 'sampling', 'roots/list'];
    const types = [...exchanges, ...more].flatMap((name) => [`mcp/${name}/req`, `mcp/${name}/resp`]);
    const all = [...types, 'mcp/server/push', 'mcp/call_tool', 'mcp/call_tool/resp'];
    expect(all).toHaveLength(21 + 2);
    await eventually(
      () => gateway.sql("select distinct event->>'verb' as verb from audit_events where type = 'a2e.message'"),
      (rows) => all.every((type) => rows.some(({ verb }: any) => verb === type)),
    );
  });

  describe('the socket itself', () => {
    it('AE-37 many concurrent messages are each answered by their id', async () => {
      await registered(
        await started('sessions', (one) =>
          one.add('late', async ({ text }) => {
            await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
            return { content: [{ type: 'text', text }] };
          }),
        ),
      );
      const one = await agent();
      const replies = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          one.say('mcp/call_tool', { tool: 'own__late', arguments: { text: `n${index}` } }),
        ),
      );
      expect(replies.map(({ text }) => text)).toEqual(replies.map((_, index) => `n${index}`));
    });

    it('an invalid message gets an error, and a message that is too long ends the socket', async () => {
      const one = await agent();
      for (const value of ['{', '7', '[]', JSON.stringify({ type: 'x' })]) one.send(value);
      await eventually(
        () => one.heard,
        ({ length }) => length === 4,
      );
      expect(one.heard.every(({ ok, error }) => ok === false && error.code === 'mcp_protocol_error')).toBe(true);
      one.send(JSON.stringify(message('x', { text: 'x'.repeat(1_048_576) })));
      expect(await one.closed).toBe(1009);
    });

    const refusal = async (path: string, headers: Record<string, string>): Promise<number> => {
      const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}${path}`, { headers });
      socket.on('error', () => undefined);
      const [, response] = await once(socket, 'unexpected-response');
      return response.statusCode as number;
    };

    it('it opens only for known callers, from allowed origins, at its path', async () => {
      const authorization = `Bearer ${gateway.token}`;
      expect(await refusal('/a2e', {})).toBe(401);
      expect(await refusal('/a2e', { authorization: 'Bearer rlt_no' })).toBe(401);
      expect(await refusal('/a2e', { authorization, origin: 'https://evil.example' })).toBe(403);
      expect(await refusal('/a2e', { authorization, host: 'evil.example' })).toBe(403);
      expect(await refusal('/mcp', { authorization })).toBe(405);
      expect(await refusal('/nowhere', { authorization })).toBe(404);
    });

    it('a request with HTTP/2 upgrade is served as HTTP/1.1, with its body; the connection stays open', async () => {
      const { port, hostname } = new URL(gateway.url);
      const socket = connect(Number(port), hostname);
      const body = JSON.stringify(message('mcp/server/list/req'));
      const request = (upgrade: string) =>
        `POST /a2e HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${gateway.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n${upgrade}\r\n${body}`;
      let answer = '';
      socket.on('data', (data: Buffer) => (answer += data.toString()));
      for (const [index, upgrade] of [
        'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n',
        '',
        'Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n',
      ].entries()) {
        socket.write(request(upgrade));
        await eventually(
          () => answer.match(/HTTP\/1\.1 200[\s\S]*?"servers":\[\]/g)?.length,
          (count) => count === index + 1,
        );
      }
      socket.destroy();
    });

    it('a revoked credential ends it', async () => {
      const { body } = await gateway.call('POST', '/api/keys', { name: 'a2e', role: 'member' });
      const one = await connectAgent({ ...gateway, token: body.key });
      await gateway.call('DELETE', `/api/keys/${body.id}`);
      expect(await one.closed).toBe(1008);
    });

    it('a stopping process answers the accepted messages, then closes with 1001', async () => {
      const slow = await started('sessions', (one) =>
        one.add('slow', async () => {
          await new Promise((resolve) => setTimeout(resolve, 700));
          return { content: [{ type: 'text', text: 'done' }] };
        }),
      );
      await registered(slow);
      const second = await startTestGateway({}, gateway);
      const [idle, busy] = [await connectAgent(second), await connectAgent(second)];
      const reply = busy.say('mcp/call_tool', { tool: 'own__slow' });
      await eventually(
        () => slow.calls,
        ({ length }) => length > 0,
      );
      const stopping = second.close();
      expect(await reply).toMatchObject({ ok: true, text: 'done' });
      expect(await Promise.all([idle.closed, busy.closed])).toEqual([1001, 1001]);
      await stopping;
    });
  });
});
