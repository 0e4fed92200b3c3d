import { startTestGateway, signToken, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const request = (method: string, params?: unknown, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  ...(params !== undefined && { params }),
});
const hello = (protocolVersion: unknown) =>
  request('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'raw', version: '1' } });

describe('MCP: the protocol at the door', () => {
  let gateway: TestGateway;
  let agent: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_MAX_BODY_BYTES: '20000' });
    agent = await startStubAgent({ card: 'v03', name: 'Plain' });
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });
  const post = (body: unknown, headers: Record<string, string> = {}, token?: string | null, path = '/mcp') =>
    gateway.call('POST', path, body, token, headers);

  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    'RE-81 initialize agrees on %s',
    async (version) => {
      const { status, headers, body } = await post(hello(version));
      expect(status).toBe(200);
      expect(body.result).toMatchObject({
        protocolVersion: version,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'rialto' },
      });
      const session = { 'mcp-session-id': headers.get('mcp-session-id')!, 'mcp-protocol-version': version };
      const ready = await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, session);
      expect([ready.status, ready.body]).toEqual([202, '']);
      expect((await post(request('ping'), session)).body).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
      expect((await post(request('tools/list'), session)).body.result.tools).toHaveLength(1);
      const called = await post(request('tools/call', { name: 'plain.work', arguments: {} }), session);
      expect(called.body.result.structuredContent).toEqual({ ok: true });
    },
  );

  it.each(['2024-10-07', '1999-01-01', '', 7, null])(
    'RE-81 initialize with %j offers the newest known revision',
    async (version) => {
      expect((await post(hello(version))).body.result.protocolVersion).toBe('2025-11-25');
    },
  );

  it('RE-81 a client of the first revision: handshake, list, call and batch on its session URL', async () => {
    const { headers } = await post(hello('2024-11-05'));
    const path = `/api/mcp/${headers.get('mcp-session-id')}`;
    const again = await post(hello('2024-11-05'), {}, undefined, path);
    expect(again.body.result.protocolVersion).toBe('2024-11-05');
    expect((await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, {}, undefined, path)).status).toBe(202);
    const batch = [
      request('tools/list', {}, 'a'),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      request('tools/call', { name: 'a2a_plain_work', arguments: {} }, 2),
      request('no/such', {}, 3),
      { jsonrpc: '1.0', id: 4, method: 'ping' },
    ];
    const { status, body } = await post(batch, {}, undefined, path);
    expect(status).toBe(200);
    expect(body.map((one: any) => [one.id, one.error?.code ?? Object.keys(one.result).sort().join()])).toEqual([
      ['a', 'tools'],
      [2, 'content,structuredContent'],
      [3, -32601],
      [4, -32600],
    ]);
    const quiet = await post([{ jsonrpc: '2.0', method: 'notifications/initialized' }], {}, undefined, path);
    expect([quiet.status, quiet.body]).toEqual([202, '']);
  });

  it('a batch has no initialize, and is refused since the revision 2025-06-18', async () => {
    const pings = [request('ping', {}, 1), { ...(hello('2025-03-26') as object), id: 2 }];
    const { status, body } = await post(pings, { 'mcp-protocol-version': '2025-03-26' });
    expect([status, body.map(({ error }: any) => error?.code)]).toEqual([200, [undefined, -32600]]);
    const named = await post([request('ping')], { 'mcp-protocol-version': '2025-06-18' });
    expect([named.status, named.body.error.code]).toEqual([400, -32000]);
    const { headers } = await post(hello('2025-11-25'));
    const ofSession = await post([request('ping')], { 'mcp-session-id': headers.get('mcp-session-id')! });
    expect(ofSession.status).toBe(400);
  });

  it.each<[string, unknown, number, number]>([
    ['a body that is not JSON', '{"jsonrpc": ', 400, -32700],
    ['an empty body', '', 400, -32700],
    ['no JSON-RPC', {}, 400, -32600],
    ['another version', { jsonrpc: '1.0', id: 1, method: 'ping' }, 400, -32600],
    ['a null id', request('ping', undefined, null), 400, -32600],
    ['an object as id', request('ping', undefined, {}), 400, -32600],
    ['a huge id', request('ping', undefined, 'x'.repeat(5_000)), 400, -32600],
    ['text as params', request('ping', 'params'), 400, -32600],
    ['an empty batch', [], 400, -32600],
    ['a batch of 21', Array(21).fill(request('ping')), 400, -32600],
    ['null', 'null', 400, -32600],
    ['a number', '42', 400, -32600],
    ['an unknown method', request('no/such'), 200, -32601],
    ['__proto__', request('__proto__'), 200, -32601],
    ['toString', request('toString'), 200, -32601],
    ['constructor', request('constructor'), 200, -32601],
    ['a method of the A2A side', request('message/send', {}), 200, -32601],
    ['a call without params', request('tools/call'), 200, -32602],
    ['a call with a list', request('tools/call', ['plain.work']), 200, -32602],
    ['a call without a name', request('tools/call', { arguments: {} }), 200, -32602],
    ['a name that is not a text', request('tools/call', { name: { toString: 1 } }), 200, -32602],
    ['arguments that are not an object', request('tools/call', { name: 'plain.work', arguments: [] }), 200, -32602],
    ['an unknown tool', request('tools/call', { name: 'plain.none' }), 200, -32602],
  ])('RE-82 abuse 31 %s', async (_, body, status, code) => {
    const answer = await post(body, { 'content-type': 'application/json' });
    expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
    expect(answer.body.jsonrpc).toBe('2.0');
    expect(answer.headers.get('x-request-id')).toBeTruthy();
  });

  it('RE-82 -32003 is a denial, -32603 an internal error', async () => {
    const viewer = await gateway.tokenOf('default', 'viewer', 'viewer');
    const call = request('tools/call', { name: 'plain.work', arguments: {} });
    expect((await post(call, {}, viewer)).body.error.code).toBe(-32003);
    const broken = await startTestGateway();
    await broken.sql('drop table agent_cards cascade');
    const { body } = await broken.call('POST', '/mcp', call);
    expect(body.error).toEqual({ code: -32603, message: 'Internal error', data: { code: 'internal' } });
    await broken.close();
  });

  it('abuse 31 notifications change nothing, also those with methods of requests', async () => {
    const before = agent.requests.length;
    for (const method of ['tools/call', 'initialize', 'no/such']) {
      const params = { name: 'plain.work', arguments: {} };
      const { status, body, headers } = await post({ jsonrpc: '2.0', method, params });
      expect([method, status, body, headers.get('mcp-session-id')]).toEqual([method, 202, '', null]);
    }
    expect((await post({ jsonrpc: '2.0', id: 9, result: {} })).status).toBe(202);
    expect(agent.requests.length).toBe(before);
  });

  it('abuse 31 one id twice at the same time: two answers', async () => {
    const call = request('tools/call', { name: 'plain.work', arguments: {} }, 'same');
    const answers = await Promise.all([post(call), post(call), post([call, call])]);
    expect(answers.flatMap(({ body }) => body).map(({ id, error }) => [id, error])).toEqual(
      Array(4).fill(['same', undefined]),
    );
  });

  it('401 without a credential, in every form that a client may read', async () => {
    const expired = await signToken({ iat: 1, exp: 100 });
    for (const token of [null, 'nonsense', expired]) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const body = method === 'POST' ? request('ping') : undefined;
        const answer = await gateway.call(method, '/mcp', body, token);
        expect([method, answer.status]).toEqual([method, 401]);
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
        expect(answer.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
      }
    }
  });

  it('the error of an unknown server has the id of the request, but not for an unknown caller', async () => {
    const ping = { ...request('ping'), id: 'x7' };
    for (const [path, status] of [['/mcp/servers/absent', 404] as const, ['/mcp?names=short', 400] as const])
      expect(await gateway.call('POST', path, ping)).toMatchObject({ status, body: { id: 'x7', error: {} } });
    expect((await gateway.call('POST', '/mcp/servers/absent', '{')).body.id).toBeNull();
    expect(await gateway.call('GET', '/mcp/servers/absent')).toMatchObject({ status: 404, body: { id: null } });
    const unknown = await gateway.call('POST', '/mcp/servers/absent', ping, null);
    expect(unknown).toMatchObject({ status: 401, body: { id: null } });
  });

  it('413, 415, 405 and 406 are statuses with a JSON-RPC body', async () => {
    const large = await post(request('ping', { x: 'x'.repeat(30_000) }));
    const typed = await post('{}', { 'content-type': 'text/plain' });
    const stream = { accept: 'text/event-stream' };
    const get = await gateway.call('GET', '/mcp', undefined, undefined, stream);
    const end = await gateway.call('DELETE', '/mcp');
    const put = await gateway.call('PUT', '/mcp', request('ping'));
    expect([large, typed, get, end, put].map(({ status }) => status)).toEqual([413, 415, 405, 405, 405]);
    for (const { body } of [large, typed, get, end]) expect(body).toMatchObject({ jsonrpc: '2.0', id: null });
    expect(get.headers.get('allow')).toContain('POST');
    const session = { 'mcp-session-id': (await post(hello('2025-11-25'))).headers.get('mcp-session-id')! };
    const unread = await gateway.call('GET', '/mcp', undefined, undefined, { ...session, accept: 'application/json' });
    expect([unread.status, unread.body.jsonrpc]).toEqual([406, '2.0']);
  });

  it('a client that accepts only streams gets its answer as a stream', async () => {
    const { headers, body } = await post(request('ping'), { accept: 'text/event-stream' });
    expect(headers.get('content-type')).toBe('text/event-stream');
    expect(body).toBe('event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n');
  });

  it('an unknown MCP-Protocol-Version is 400', async () => {
    const { status, body } = await post(request('ping'), { 'mcp-protocol-version': '1999-01-01' });
    expect([status, body.jsonrpc]).toEqual([400, '2.0']);
  });

  it('abuse 40 pages of other origins and rebound hosts are refused', async () => {
    for (const origin of ['http://evil.example', 'null', 'file://', 'http://127.0.0.1.evil.example', 'garbage']) {
      const { status, body } = await post(request('ping'), { origin });
      expect([origin, status, body.jsonrpc]).toEqual([origin, 403, '2.0']);
    }
    for (const origin of [gateway.url, 'http://localhost:5173'])
      expect((await post(request('ping'), { origin })).status).toBe(200);
  });
});

describe('MCP: limits at the door', () => {
  it('429 with Retry-After and a JSON-RPC body', async () => {
    const gateway = await startTestGateway({ RIALTO_RATE_LIMIT_PRINCIPAL: '1' });
    const answers = [];
    for (let count = 0; count < 12; count++) answers.push(await gateway.call('POST', '/mcp', request('ping')));
    const refused = answers.at(-1)!;
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.body).toMatchObject({ jsonrpc: '2.0', id: null, error: { data: { code: 'rate_limited' } } });
    await gateway.close();
  });
});
