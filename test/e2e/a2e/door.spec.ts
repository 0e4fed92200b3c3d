import { connectAgent, message, poster, unregisterAll } from '../../support/clients/a2e.js';
import { sendBytes } from '../../support/clients/raw-socket.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { library } from '../../support/gateway/library.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

describe('the A2E door', () => {
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
  const started = async () => {
    const one = await TestUpstream.start();
    open.push(one);
    return one;
  };
  const servers = async () => (await say('mcp/server/list/req')).servers;
  it('AE-15 an invalid message changes nothing, and gets an error', async () => {
    const one = await started();
    for (const body of [
      7,
      'x',
      { id: 'x' },
      { type: 'mcp/server/register/req', server_id: 'own', url: one.url },
      { type: 'mcp/server/register/req', id: '', server_id: 'own', url: one.url },
      { ...message('mcp/server/register/req'), version: '2.0', server_id: 'own', url: one.url },
      { ...message('mcp/server/register/req'), ts: 'now', server_id: 'own', url: one.url },
      { ...message('mcp/server/register/req'), payload: [], server_id: 'own', url: one.url },
    ])
      expect(await post(JSON.stringify(body))).toMatchObject({ ok: false, error: { code: 'mcp_protocol_error' } });
    expect(await servers()).toEqual([]);
    expect((await gateway.call('POST', '/a2e', '{', undefined)).status).toBe(400);
    expect((await gateway.call('POST', '/a2e', [])).status).toBe(400);
    expect((await gateway.call('POST', '/a2e', message('x'), null)).status).toBe(401);
    expect((await gateway.call('GET', '/a2e')).status).toBe(405);
    const elsewhere = { origin: 'https://evil.example' };
    expect((await gateway.call('POST', '/a2e', message('x'), undefined, elsewhere)).status).toBe(403);
  });

  it.each([
    ['key', { 'Sec-WebSocket-Key': 'x', 'Sec-WebSocket-Version': '13' }],
    ['version', { 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==', 'Sec-WebSocket-Version': '7' }],
  ])('answers a WebSocket handshake with a wrong %s with a problem document', async (name, more) => {
    const headers = { Host: 'localhost', Connection: 'Upgrade', Upgrade: 'websocket', ...more };
    const lines = Object.entries({ ...headers, Authorization: `Bearer ${gateway.token}` }).map((line) =>
      line.join(': '),
    );
    const request = Buffer.from(`GET /a2e HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    const { answer } = await sendBytes(Number(new URL(gateway.url).port), request, { hangMs: 30_000 });
    expect(answer).toMatchObject({
      status: 400,
      headers: {
        'content-type': expect.stringContaining('application/problem+json'),
        'x-request-id': expect.any(String),
        'sec-websocket-version': '13',
      },
    });
    expect(JSON.parse(answer!.body)).toMatchObject({
      code: 'invalid_params',
      detail: expect.stringMatching(new RegExp(`Sec-WebSocket-${name}`, 'i')),
    });
  });

  it('AE-69 messages are dispatched by their type; an unknown type is refused', async () => {
    for (const type of ['mcp/nothing/req', 'mcp/sampling/req', 'other/thing', 'mcp/server/register/resp']) {
      const reply = await say(type);
      expect(reply).toMatchObject({ ok: false, error: { code: 'mcp_protocol_error' } });
      expect(reply.type).toMatch(/\/resp$/);
    }
  });

  it('several messages are processed and answered in their order', async () => {
    const one = await started();
    const batch = [
      message('mcp/server/register/req', { server_id: 'own', url: one.url }),
      message('mcp/call_tool', { tool: 'own__echo', arguments: { text: 'hi' } }),
      7,
      message('mcp/server/unregister/req', { server_id: 'own' }),
      message('mcp/server/list/req'),
    ];
    const replies = await post(batch);
    expect(replies.map(({ ok }: any) => ok)).toEqual([true, true, false, true, true]);
    expect(replies.map(({ req_id }: any) => req_id)).toEqual(batch.map((one: any) => one.id ?? null));
    expect([replies[1].text, replies[4].servers]).toEqual(['hi', []]);
  });

  it('policy decides each act, and a denial is reported as one', async () => {
    const one = await started();
    await say('mcp/server/register/req', { server_id: 'own', url: one.url });
    const viewer = await gateway.tokenOf('default', 'vera', 'viewer');
    for (const [type, payload] of [
      ['mcp/server/register/req', { server_id: 'mine', url: one.url }],
      ['mcp/server/unregister/req', { server_id: 'own' }],
      ['mcp/call_tool', { tool: 'own__echo' }],
    ] as const)
      expect((await say(type, payload, viewer)).error).toMatchObject({ code: 'mcp_denied', retryable: false });
    const stranger = await gateway.tokenOf('globex', 'gina', 'admin');
    expect((await say('mcp/server/list/req', {}, stranger)).servers).toEqual([]);
    expect((await say('mcp/call_tool', { tool: 'own__echo' }, stranger)).error.code).toBe('mcp_tool_not_found');
    expect(await servers()).toHaveLength(1);
  });

  it('a caller that may not discover a server sees it in no list and gets no push', async () => {
    const one = await library('sessions', 'a://x', ['one']);
    open.push(one);
    await say('mcp/server/register/req', { server_id: 'own', url: one.url });
    const token = await gateway.tokenOf('default', 'mia');
    const text = 'forbid(principal == User::"mia", action == Action::"mcp_discover", resource == McpServer::"own");';
    const { body } = await gateway.call('POST', '/api/policies', { name: 'not-for-mia', text });
    const [blind, seeing] = [await connectAgent({ ...gateway, token }), await connectAgent(gateway)];
    await eventually(
      async () => (await say('mcp/server/list/req', {}, token)).servers,
      (shown) => shown.length === 0,
    );
    expect((await say('mcp/resource/list/req', {}, token)).resources).toEqual([]);
    expect((await say('mcp/prompt/list/req', {}, token)).prompts).toEqual([]);
    expect((await say('mcp/resource/list/req')).resources).toHaveLength(1);
    for (const type of ['mcp/resource/list/req', 'mcp/prompt/list/req', 'mcp/server/list/req'])
      expect((await say(type, { server_id: 'own' }, token)).error.code).toBe('mcp_server_not_found');
    await eventually(
      async () => {
        await one.say('notifications/weather', {});
        return seeing.pushes;
      },
      (pushes) => pushes.some(({ method }) => method === 'notifications/weather'),
    );
    expect(blind.pushes).toEqual([]);
    await Promise.all([blind.close(), seeing.close()]);
    await gateway.call('DELETE', `/api/policies/${body.id}`);
  });

  it('AE-70 each message is audited, successful or not, without its payload', async () => {
    const one = await started();
    const secret = 'sesame-0123456789';
    await say('mcp/server/register/req', { server_id: 'own', url: one.url, headers: { 'x-key': secret } });
    await say('mcp/call_tool', { tool: 'own__echo', arguments: { text: secret } });
    await say('mcp/server/unregister/req', { server_id: 'nobody' });
    const unknown = await say(`mcp/${'x'.repeat(100)}`);
    const rows = await gateway.sql(
      "select event from audit_events where type = 'a2e.message' order by id desc limit 8",
    );
    const facts = rows.map(({ event }: any) => event);
    const audited = facts.map(({ verb, direction, outcome, error = '' }: any) =>
      [verb.slice(0, 30), direction, outcome, error].join(' '),
    );
    expect(audited.sort()).toEqual(
      [
        'mcp/server/register/req in completed ',
        'mcp/server/register/resp out completed ',
        'mcp/call_tool in completed ',
        'mcp/call_tool/resp out completed ',
        'mcp/server/unregister/req in failed mcp_server_not_found',
        'mcp/server/unregister/resp out failed mcp_server_not_found',
        `mcp/${'x'.repeat(26)} in failed mcp_protocol_error`,
        `mcp/${'x'.repeat(26)} out failed mcp_protocol_error`,
      ].sort(),
    );
    const last = facts.find(({ messageId }: any) => messageId === unknown.id);
    expect(last).toMatchObject({ inReplyTo: unknown.req_id, surface: 'a2e', principal: { role: 'admin' } });
    expect(JSON.stringify(await gateway.sql('select event from audit_events'))).not.toContain(secret);
    expect(gateway.log.join('')).not.toContain(secret);
    expect((await gateway.call('POST', '/api/audit/verify')).body).toMatchObject({ valid: true });
  });
});
