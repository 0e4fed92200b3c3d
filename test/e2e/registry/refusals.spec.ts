import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { http, closeAll } from '../../support/clients/outbound.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';
import { redirect } from '../../support/stubs/stub-hostile.js';

const path = '/api/a2a/agents';

describe('registration refuses', () => {
  let gateway: TestGateway;
  const stubs: StubAgent[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
  });

  afterEach(async () => {
    await Promise.all(stubs.splice(0).map((stub) => stub.close()));
    await closeAll();
    await gateway.sql('delete from agent_cards');
  });

  afterAll(() => gateway.close());

  async function stub(options: StubAgentOptions = {}): Promise<StubAgent> {
    const started = await startStubAgent(options);
    stubs.push(started);
    return started;
  }

  const register = (body: object, token?: string) => gateway.call('POST', path, body, token);

  it.each([
    'nonsense',
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data',
    'http://0/',
    'http://[::ffff:10.0.0.1]/',
    'http://user:pass@127.0.0.1/',
    'javascript:alert(1)',
    'http://',
  ])('url_not_allowed for %s, with the host of the URL and no other detail', async (url) => {
    const { status, body } = await register({ url });
    expect({ status, code: body.code }).toEqual({ status: 422, code: 'url_not_allowed' });
    const host = URL.canParse(url) ? new URL(url).hostname : '';
    const named = host === '' || url.includes('user:') ? {} : { detail: `the host "${host}" may not be called` };
    expect(body).toMatchObject(named);
    expect(JSON.stringify({ ...body, detail: '' })).not.toMatch(/10\.0\.0\.1|169\.254|ECONN|private|pass/);
  });

  it('abuse 22: no redirect reaches a forbidden address or forwards a credential', async () => {
    const agent = await stub();
    for (const location of ['http://169.254.169.254/', 'http://10.0.0.1/card.json', 'gopher://127.0.0.1/']) {
      agent.set(redirect(302, location), 'card');
      const { status, body } = await register({
        url: agent.url,
        credential: { type: 'bearer', token: 'canary-of-22' },
      });
      expect(status).toBeGreaterThanOrEqual(400);
      expect(['card_invalid', 'url_not_allowed']).toContain(body.code);
      expect(JSON.stringify(body)).not.toMatch(/169\.254|10\.0\.0\.1/);
    }
    const seen: (string | undefined)[] = [];
    const elsewhere = await http((request, response) => {
      seen.push(request.headers.authorization);
      response.end('{}');
    });
    agent.set(redirect(302, `${elsewhere.url}/card.json`), 'card');
    await register({ url: agent.url, credential: { type: 'bearer', token: 'canary-of-22' } });
    expect(seen.join()).not.toContain('canary-of-22');
    expect(agent.cardRequests.map(({ headers }) => headers.authorization).join()).not.toContain('canary-of-22');
  });

  it('abuse 23: all closed ports get the same answer, without an address', async () => {
    const answers = await Promise.all(
      ['http://127.0.0.1:1', 'http://127.0.0.1:9', 'http://[::1]:1'].map((url) => register({ url })),
    );
    const texts = answers.map(({ body }) => JSON.stringify({ ...body, requestId: '' }));
    expect(new Set(texts).size).toBe(1);
    expect(texts[0]).not.toMatch(/ECONN|127\.0|::1/);
    expect(answers[0]!.body).toMatchObject({ status: 400, code: 'card_invalid', upstreamStatus: null });
  });

  it('(P2) an unreachable agent is refused with the reason', async () => {
    const plain = await http((_request, response) => response.end('{}'));
    const other = createServer((socket) => void socket.on('error', () => undefined).end('SSH-2.0-x\r\n'));
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const reasons: [string, RegExp][] = [
      ['http://127.0.0.1:1', /refused/],
      ['https://nosuchhost.invalid', /host name is unknown/],
      [plain.url.replace('http:', 'https:'), /does not speak TLS/],
      [`http://127.0.0.1:${(other.address() as AddressInfo).port}`, /does not speak HTTP/],
    ];
    for (const [url, reason] of reasons) {
      const { status, body } = await register({ url });
      expect([status, body.code, body.detail]).toEqual([400, 'card_invalid', expect.stringMatching(reason)]);
    }
    other.close();
  });

  const cardOf = (url: string, more: object = {}) => ({
    name: 'Stub',
    description: 'x',
    version: '1',
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    url,
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'do', name: 'Do', description: 'does', tags: [] }],
    ...more,
  });
  /** Starts a server with these answers by path. */
  const serving = (paths: Record<string, [number, string | object, object?]>) =>
    http((request, response) => {
      const [status, body, headers = {}] = paths[request.url!] ?? [404, ''];
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
    });
  const [newer, older] = ['/.well-known/agent-card.json', '/.well-known/agent.json'] as const;

  it.each(['http://[::]:9001/rpc', 'http://10.0.0.1/rpc', 'https://169.254.169.254/a2a'])(
    '(C01) a card with forbidden addresses only: %s',
    async (address) => {
      const { url } = await serving({ [newer]: [200, cardOf(address)] });
      const { status, body } = await register({ url });
      expect([status, body.code]).toEqual([422, 'url_not_allowed']);
      expect(body.detail).toContain(address);
      const fine = { additionalInterfaces: [{ url: 'http://127.0.0.1:9/rpc', transport: 'JSONRPC' }] };
      const mixed = await serving({ [newer]: [200, cardOf(address, fine)] });
      expect((await register({ url: mixed.url })).status).toBe(201);
    },
  );

  it('(C01) an agent with only forbidden addresses is not healthy, and a call is no error of its caller', async () => {
    const paths: Parameters<typeof serving>[0] = { [newer]: [200, cardOf('/rpc')] };
    const { url } = await serving(paths);
    const { body } = await register({ url, slug: 'moves' });
    paths[newer] = [200, cardOf('http://10.0.0.1/rpc')];
    const again = await gateway.call('POST', `${path}/${body.id}/refetch`, {});
    expect(again.body).toMatchObject({ health: 'degraded', lastError: expect.stringContaining('http://10.0.0.1/rpc') });
    await gateway.sql('update agent_cards set card = $1, updated_at = now()', [
      JSON.stringify(cardOf('http://10.0.0.1/rpc')),
    ]);
    await eventually(
      async () => (await gateway.rpc('tools/call', { name: 'moves.do', arguments: {} })).error,
      (error) => error?.code === -32202 && /"moves"/.test(error.message),
    );
  });

  it.each([
    ['bearer', { type: 'bearer', token: 'sesame-1' }, 'authorization', 'Bearer sesame-1'],
    ['apiKey', { type: 'apiKey', header: 'X-Key', value: 'sesame-2' }, 'x-key', 'sesame-2'],
  ])(
    '(C02) a card behind a credential is fetched with it, at registration and later: %s',
    async (_kind, credential, header, value) => {
      const seen: (string | undefined)[] = [];
      const { url } = await http((request, response) => {
        const proof = request.headers[header] as string | undefined;
        seen.push(proof);
        const isOpen = proof === value && request.url === newer;
        response.writeHead(isOpen ? 200 : 401, { 'content-type': 'application/json' });
        response.end(isOpen ? JSON.stringify(cardOf('/rpc')) : '{}');
      });
      const { status, body } = await register({ url, credential });
      expect([status, seen]).toEqual([201, [undefined, value]]);
      expect((await gateway.call('POST', `${path}/${body.id}/refetch`, {})).body.health).toBe('healthy');
      expect(seen).toEqual([undefined, value, undefined, value]);
      await gateway.sql('delete from agent_cards');
      expect((await register({ url })).body).toMatchObject({ code: 'card_invalid', upstreamStatus: 401 });
    },
  );

  it.each<[string, [number, string | object, object?]]>([
    ['a page', [200, '<html></html>', { 'content-type': 'text/html' }]],
    ['401', [401, '{}']],
    ['403', [403, { message: 'Missing Authentication Token' }]],
    ['500', [500, '']],
  ])('(C06) requests the older path when the newer one answers %s', async (_what, first) => {
    const { url } = await serving({ [newer]: first, [older]: [200, cardOf('/rpc')] });
    expect((await register({ url })).status).toBe(201);
    const without = await serving({ [newer]: first, [older]: [404, ''] });
    const { body } = await register({ url: without.url });
    expect(body).toMatchObject({ code: 'card_invalid', upstreamStatus: first[0] });
  });

  it('abuse 27: credentials that would inject a header are refused', async () => {
    const { url } = await stub();
    const bad = [
      { type: 'bearer', token: 'a\r\nX: y' },
      { type: 'bearer', token: 'a\u0000b' },
      { type: 'bearer', token: 'ä' },
      { type: 'apiKey', header: 'Host', value: 'x' },
      { type: 'apiKey', header: 'content-length', value: '1' },
      { type: 'apiKey', header: ':authority', value: 'x' },
      { type: 'apiKey', header: 'x y', value: 'x' },
      { type: 'apiKey', header: 'X-Key', value: 'a\nb' },
    ];
    for (const credential of bad) expect((await register({ url, credential })).status).toBe(400);
  });

  it.each(['orgId', 'id', 'ownerId', 'health', 'state', 'leaseEpoch', 'createdAt', 'updatedAt', 'card', 'source'])(
    'abuse 13: a body that sets %s',
    async (member) => {
      const agent = await stub();
      const planted = '00000000-0000-7000-8000-000000000001';
      const refused = await register({ url: agent.url, [member]: planted });
      expect(refused.body).toMatchObject({ status: 400, code: 'invalid_params' });
      expect(agent.cardRequests).toEqual([]);
      const { id } = (await register({ url: agent.url })).body;
      const [before] = await gateway.sql('select to_jsonb(a) as row from agent_cards a where id = $1', [id]);
      expect((await gateway.call('PATCH', `${path}/${id}`, { [member]: planted })).status).toBe(400);
      expect((await gateway.call('PATCH', `${path}/${id}`, { trustLevel: 'trusted', [member]: planted })).status).toBe(
        400,
      );
      expect(await gateway.sql('select to_jsonb(a) as row from agent_cards a where id = $1', [id])).toEqual([before]);
    },
  );

  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  it.each([
    ['nested 100,000 deep', `{"url":${deep}}`],
    ['not JSON', '{"url":'],
    ['empty', ''],
    ['a list', '[]'],
    ['a text', '"http://127.0.0.1"'],
    ['a NUL', '{"url":"http://a\\u0000b"}'],
    ['a lone surrogate', '{"url":"http://a","slug":"\\ud800"}'],
    ['an overflowing number', '{"url":"http://a","timeoutMs":1e400}'],
    ['60,000 members', `{${Array.from({ length: 60_000 }, (_, index) => `"k${index}":1`).join(',')}}`],
    ['prototypes', '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'],
    ['UTF-16', Buffer.from('\ufeff{"url":"x"}', 'utf16le').toString('latin1')],
    ['larger than 1 MiB', JSON.stringify({ url: 'x'.repeat(1_100_000) })],
  ])('abuse 30: a body with %s, without an internal error', async (_what, body) => {
    const { status } = await gateway.call('POST', path, body, gateway.token, { 'content-type': 'application/json' });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it('abuse 30: other types, other charsets, compressed bodies', async () => {
    const declared: Record<string, string>[] = [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    ];
    for (const headers of declared)
      expect((await gateway.call('POST', path, '{"url":"http://a"}', gateway.token, headers)).status).toBe(415);
  });
});

describe('how much an org may register', () => {
  it('RIALTO_MAX_AGENTS_PER_ORG limits each org separately, and a removed agent makes room', async () => {
    const gateway = await startTestGateway({ RIALTO_MAX_AGENTS_PER_ORG: '2' });
    const agents = await Promise.all([1, 2, 3].map((n) => startStubAgent({ name: `Agent ${n}` })));
    const register = (n: number) => gateway.call('POST', path, { url: agents[n]!.url });
    try {
      expect([(await register(0)).status, (await register(1)).status]).toEqual([201, 201]);
      const refused = await register(2);
      expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
        422,
        'unprocessable',
        'the org already has 2 registered agents, which is the maximum',
      ]);
      await gateway.call('DELETE', `${path}/agent_1`);
      expect((await register(2)).status).toBe(201);
    } finally {
      await Promise.all(agents.map((agent) => agent.close()));
      await gateway.close();
    }
  });

  it('of concurrent removals of one agent, one succeeds and the others find nothing', async () => {
    const gateway = await startTestGateway();
    const agent = await startStubAgent({ name: 'Once' });
    try {
      for (let round = 0; round < 5; round++) {
        const { id } = (await gateway.call('POST', path, { url: agent.url })).body;
        const removals = await Promise.all([1, 2, 3].map(() => gateway.call('DELETE', `${path}/${id}`)));
        expect(removals.map(({ status }) => status).sort()).toEqual([204, 404, 404]);
      }
    } finally {
      await agent.close();
      await gateway.close();
    }
  });
});
