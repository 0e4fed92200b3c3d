import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type Answer, type TestGateway } from '../../support/gateway/gateway.js';

const wellKnown = '/.well-known/agent-card.json';
const secretSkills = [
  { id: 'mcp__user_1f_mail' },
  { id: 'mcp__org_7_crm' },
  { id: 'hidden', public: false },
  { id: 'private', requiresAuth: true },
  { id: 'delete', isConsequential: true },
];
const openSkills = [{ id: 'chat' }, { id: 'mcp__stdio_search' }];

let gateway: TestGateway;
let globex: string;

const get = (path: string, headers: Record<string, string> = {}, token: string | null = null): Promise<Answer> =>
  gateway.call('GET', path, undefined, token, headers);
const publish = (body: object, token?: string) =>
  gateway.call(
    'POST',
    '/api/a2a/published',
    { description: 'Answers.', executor: { kind: 'echo' }, a2a_enabled: true, ...body },
    token,
  );
const change = (name: string, body: object) => gateway.call('PATCH', `/api/a2a/published/${name}`, body);
const idsOf = ({ body }: Answer): string[] => body.skills.map(({ id }: { id: string }) => id);

beforeAll(async () => {
  gateway = await startTestGateway();
  globex = await gateway.tokenOf('globex', 'gina', 'admin');
  await publish({ name: 'kofi', handle: 'ko', skills: [...openSkills, ...secretSkills], publishToCard: true });
  await publish({ name: 'older', protocolVersions: ['0.3'] });
  await publish({ name: 'newer', protocolVersions: ['1.0'] });
  await publish({ name: 'kofi', description: 'Of globex.', publishToCard: true }, globex);
  await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'kofi' });
});

afterAll(() => gateway.close());

describe('the card of an agent', () => {
  const paths = [
    wellKnown,
    '/.well-known/agent.json',
    `/a2a/agents/kofi${wellKnown}`,
    '/a2a/agents/kofi/.well-known/agent.json',
    `/a2a/agents/kofi%40default${wellKnown}`,
    '/a2a/kofi/agent.json',
    `/a2a/kofi${wellKnown}`,
    '/a2a/ko/agent.json',
    '/a2a/ko@default/agent.json',
    '/a2a/ko%40default/.well-known/agent.json',
    '/a2a/kofi@127.0.0.1/agent.json',
  ];

  it('C13 RI-08 RY-02 is the same on every path, for every reader, byte for byte', async () => {
    for (const headers of [{}, { 'a2a-version': '0.3' }, { 'a2a-version': '1.0' }] as Record<string, string>[]) {
      for (const token of [null, gateway.token]) {
        const answers = await Promise.all(paths.map((path) => get(path, headers, token)));
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
        expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
        expect(new Set(answers.map((answer) => answer.headers.get('etag'))).size).toBe(1);
      }
    }
  });

  it('RI-11 RI-13 RY-10 has these members, with flags for available features, and is signed', async () => {
    const url = `${gateway.url}/a2a/agents/kofi`;
    const { body } = await get(wellKnown, { 'a2a-version': '1.0' });
    expect(body).toEqual({
      name: 'kofi',
      description: 'Answers.',
      supportedInterfaces: ['1.0', '0.3'].flatMap((protocolVersion) =>
        ['JSONRPC', 'HTTP+JSON'].map((protocolBinding) => ({ url, protocolBinding, protocolVersion })),
      ),
      version: '1.0.0',
      capabilities: {
        streaming: true,
        pushNotifications: true,
        extensions: [
          {
            uri: 'urn:rialto:identity:v1',
            description: expect.any(String),
            params: { trustTier: 3, handle: 'ko@default', verified: true },
          },
        ],
        extendedAgentCard: true,
      },
      securitySchemes: { jwtBearer: { httpAuthSecurityScheme: { scheme: 'bearer', bearerFormat: 'JWT' } } },
      securityRequirements: [{ schemes: { jwtBearer: { list: [] } } }],
      defaultInputModes: ['text/plain', 'application/json', '*/*'],
      defaultOutputModes: ['text/plain', 'application/json'],
      skills: openSkills.map(({ id }) => ({ id, name: id, description: id, tags: [id] })),
      signatures: [
        { protected: expect.any(String), signature: expect.any(String) },
        { protected: expect.any(String), signature: expect.any(String) },
      ],
    });
  });

  it('AN-03 has the version of its reader: both versions by default, pure 1.0 on request', async () => {
    expect((await get(wellKnown)).body).toMatchObject({
      protocolVersion: '0.3',
      url: `${gateway.url}/a2a/agents/kofi`,
      supportedInterfaces: expect.any(Array),
    });
    for (const asked of [get(wellKnown, { 'a2a-version': '1.0.1' }), get(`${wellKnown}?A2A-Version=1.0`)])
      expect((await asked).body).not.toHaveProperty('protocolVersion');
    expect((await get(`/a2a/agents/newer${wellKnown}`)).body).not.toHaveProperty('protocolVersion');
    const older = (await get(`/a2a/agents/older${wellKnown}`, { 'a2a-version': '1.0' })).body;
    expect(older).toMatchObject({ protocolVersion: '0.3', preferredTransport: 'JSONRPC' });
    expect(older).not.toHaveProperty('supportedInterfaces');
  });

  it('AN-05 AN-06 AN-07 shows all skills only to a credential of its org', async () => {
    const all = [...openSkills, ...secretSkills].map(({ id }) => id);
    const open = openSkills.map(({ id }) => id);
    for (const path of [wellKnown, '/a2a/ko/agent.json']) {
      const known = await get(path, {}, gateway.token);
      expect(idsOf(known)).toEqual(all);
      expect(known.headers.get('cache-control')).toBe('private, no-store');
      expect(JSON.stringify(known.body)).not.toMatch(/"public"|requiresAuth|isConsequential/);
    }
    for (const token of [null, 'rlt_nobody', 'a.b.c']) {
      const anyone = await get(wellKnown, {}, token);
      expect([anyone.status, idsOf(anyone)]).toEqual([200, open]);
      expect(anyone.headers.get('cache-control')).toBe('public, max-age=60');
    }
    expect(idsOf(await get(`/a2a/agents/kofi@default${wellKnown}`, {}, globex))).toEqual(open);
  });

  it('AN-04 RI-11 states the disabled features', async () => {
    for (const flag of [false, true]) {
      await change('newer', { streaming: flag, pushNotifications: flag, extendedCard: flag });
      const { capabilities } = (await get(`/a2a/agents/newer${wellKnown}`)).body;
      expect(capabilities).toMatchObject({ streaming: flag, pushNotifications: flag, extendedAgentCard: flag });
    }
  });

  it("RI-09 is found by name@org and handle everywhere, by bare name in the credential's org or default", async () => {
    const descriptionOf = async (name: string, token: string | null = null) =>
      (await get(`/a2a/agents/${name}${wellKnown}`, {}, token)).body.description;
    expect(await descriptionOf('kofi')).toBe('Answers.');
    expect(await descriptionOf('kofi', globex)).toBe('Of globex.');
    for (const name of ['kofi@globex', 'kofi%40globex', 'KOFI@globex'])
      expect(await descriptionOf(name)).toBe('Of globex.');
    expect((await get('/a2a/kofi@globex/agent.json')).body.supportedInterfaces[0].url).toBe(
      `${gateway.url}/a2a/agents/kofi@globex`,
    );
    for (const name of ['kofi@nowhere', 'kofi@globex@globex', '@globex', 'kofi@', 'agents', 'tasks', 'x'.repeat(500)])
      expect((await get(`/a2a/${name}/agent.json`)).status).toBe(404);
  });

  it('N10 RI-13 a handle with a host is one agent in the deployment, verified for the owner of the host', async () => {
    const handle = 'shared@beta.example';
    const identityOf = async (path: string) => (await get(path)).body.capabilities.extensions[0].params;
    const agent = (name: string) => ({ name, handle, description: 'x', executor: { kind: 'echo' }, a2a_enabled: true });
    const attempt = (name: string, token?: string) => gateway.call('POST', '/api/a2a/published', agent(name), token);
    await publish({ name: 'squatter', handle }, globex);
    const unowned = { trustTier: 1, handle, verified: false };
    expect(await identityOf(`/a2a/agents/squatter@globex${wellKnown}`)).toEqual(unowned);
    for (const token of [null, globex, gateway.token])
      expect((await get(`/a2a/${handle}/agent.json`, {}, token)).body.name).toBe('squatter');
    const taken = await attempt('second');
    expect([taken.status, taken.body.detail]).toEqual([
      409,
      'another agent of this deployment already has the handle "shared@beta.example"',
    ]);
    await publish({ name: 'second' });
    expect((await gateway.call('PATCH', '/api/a2a/published/second', { handle })).status).toBe(409);
    await gateway.call('DELETE', '/api/a2a/published/second');
    const race = await Promise.all(
      [gateway.token, globex].map((token, index) =>
        gateway.call('POST', '/api/a2a/published', { ...agent(`race-${index}`), handle: 'race@beta.example' }, token),
      ),
    );
    expect(race.map(({ status }) => status).sort()).toEqual([201, 409]);

    await gateway.call('PUT', '/api/orgs/default/domains', { domains: ['beta.example'] });
    expect((await attempt('owner')).status).toBe(201);
    const found = await eventually(
      () => get(`/a2a/${handle}/agent.json`),
      ({ body }) => body.name === 'owner',
    );
    expect(found.body.capabilities.extensions[0].params).toEqual({ ...unowned, trustTier: 3, verified: true });
    expect(await identityOf(`/a2a/agents/squatter@globex${wellKnown}`)).toEqual(unowned);
    const foreign = await gateway.call(
      'POST',
      '/api/a2a/published',
      { ...agent('third'), handle: 'other@beta.example' },
      globex,
    );
    expect([foreign.status, foreign.body.detail]).toEqual([409, 'handle: "beta.example" belongs to another org']);
    await gateway.call('PUT', '/api/orgs/default/domains', { domains: [] });
    for (const name of ['owner', 'race-0']) await gateway.call('DELETE', `/api/a2a/published/${name}`);
    for (const name of ['squatter', 'race-1'])
      await gateway.call('DELETE', `/api/a2a/published/${name}`, undefined, globex);
  });

  it('RI-09 may have a handle with another host', async () => {
    await publish({ name: 'abena', handle: 'abena@core.example' });
    for (const name of ['abena@core.example', 'abena%40core.example'])
      expect((await get(`/a2a/${name}/agent.json`)).body.name).toBe('abena');
    expect((await publish({ name: 'esi', handle: 'esi-a@default' })).body.handle).toBe('esi-a');
  });
});

describe('caching of cards', () => {
  it('RE-78 has validators, and answers 304 to a client that has the card', async () => {
    const { headers } = await get(wellKnown);
    const [etag, modified] = [headers.get('etag')!, headers.get('last-modified')!];
    expect(headers.get('vary')).toBe('A2A-Version, Authorization');
    for (const known of [
      { 'if-none-match': etag },
      { 'if-none-match': `"other", W/${etag}` },
      { 'if-none-match': '*' },
      { 'if-modified-since': modified },
      { 'if-none-match': etag, 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
    ] as Record<string, string>[]) {
      const answer = await get(wellKnown, known);
      expect([answer.status, answer.body, answer.headers.get('etag')]).toEqual([304, '', etag]);
      expect(answer.headers.get('cache-control')).toBe('public, max-age=60');
    }
    for (const unknown of [
      { 'if-none-match': '"other"' },
      { 'if-none-match': '"other"', 'if-modified-since': modified },
      { 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
    ] as Record<string, string>[])
      expect((await get(wellKnown, unknown)).status).toBe(200);
  });

  it('RE-78 has a different validator for every change and every form', async () => {
    const tag = async (headers = {}, token: string | null = null) =>
      (await get(`/a2a/agents/kofi${wellKnown}`, headers, token)).headers.get('etag');
    const before = await tag();
    const others = [await tag({ 'a2a-version': '1.0' }), await tag({}, gateway.token)];
    await change('kofi', { version: '1.0.1' });
    const after = await tag();
    await change('kofi', { version: '1.0.0' });
    expect(new Set([before, ...others, after]).size).toBe(4);
    expect(await tag()).toBe(before);
  });

  it('AN-08 accepts GET, HEAD and OPTIONS, and answers 405 to other methods', async () => {
    for (const path of [
      wellKnown,
      `/a2a/agents/kofi${wellKnown}`,
      '/a2a/ko/agent.json',
      '/.well-known/jwks.json',
      '/a2a/agents',
    ]) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        const refused = await gateway.call(method, path, {}, null);
        expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
      }
      const [whole, head, preflight] = await Promise.all([
        get(path),
        gateway.call('HEAD', path, undefined, null),
        gateway.call('OPTIONS', path, undefined, null),
      ]);
      expect([head.status, head.body, preflight.status]).toEqual([200, '', 204]);
      expect(head.headers.get('content-length')).toBe(whole.headers.get('content-length'));
      for (const { headers } of [whole, head, preflight]) expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(preflight.headers.get('access-control-allow-headers')).toMatch(/A2A-Version/);
      expect(whole.headers.get('content-type')).toMatch(/^application\/json/);
      expect(whole.headers.get('x-request-id')).toBeTruthy();
    }
  });

  it('refuses undecodable paths without an error', async () => {
    for (const path of ['/a2a/%ff/agent.json', '/a2a/%/agent.json', '/a2a/agents/%00/.well-known/agent-card.json'])
      expect([400, 404]).toContain((await get(path)).status);
  });
});

describe('the card of the service', () => {
  it('RE-78 RE-79 has with ?org= the published skills of an org, is not cached, and 404 without skills', async () => {
    const { status, headers, body } = await get(`${wellKnown}?org=default`);
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(body).toMatchObject({ name: 'Default', skills: openSkills, url: `${gateway.url}/a2a` });
    expect(idsOf(await get(`${wellKnown}?org=default`, {}, gateway.token))).toEqual(openSkills.map(({ id }) => id));
    expect(idsOf(await get(`${wellKnown}?org=globex`))).toEqual(['chat']);
    for (const org of ['nobody', 'initech', '', 'a/b', 'x'.repeat(300)])
      expect((await get(`${wellKnown}?org=${org}`)).status).toBe(404);
  });

  it('distinguishes skills with the same id by the names of their agents', async () => {
    await change('newer', { publishToCard: true });
    expect(idsOf(await get(`${wellKnown}?org=default`))).toEqual(['kofi.chat', 'mcp__stdio_search', 'newer.chat']);
    await change('newer', { publishToCard: false });
  });

  it('AN-01 is the card of the default agent, first of the org of the credential, else of the gateway', async () => {
    const nameFor = async (token: string | null = null) => (await get(wellKnown, {}, token)).body.name;
    const set = (org: string, defaultAgent: string | null) =>
      gateway.call('PATCH', `/api/orgs/${org}`, { defaultAgent });
    expect([await nameFor(), await nameFor(globex)]).toEqual(['kofi', 'kofi']);
    await set('globex', 'kofi');
    expect((await get(wellKnown, {}, globex)).body.description).toBe('Of globex.');
    await set('default', null);
    const gatewayCard = await get(wellKnown);
    expect(gatewayCard.body).toMatchObject({ name: 'Rialto', skills: openSkills });
    expect(gatewayCard.headers.get('cache-control')).toBe('public, max-age=60');
    await set('default', 'kofi');
    await change('kofi', { a2a_enabled: false });
    expect((await get(wellKnown)).body).toMatchObject({ name: 'Rialto', skills: [] });
    await change('kofi', { a2a_enabled: true });
    expect(await nameFor()).toBe('kofi');
  });
});

describe('the index of agents', () => {
  it('RY-06 RY-07 lists the agents of the caller’s org, or of default without a credential', async () => {
    const { body, headers } = await get('/a2a/agents');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(Object.keys(body)).toEqual(['agents', 'protocolVersion']);
    expect(body.protocolVersion).toBe('1.0');
    expect(body.agents).toContainEqual({
      name: 'kofi',
      role: 'Answers.',
      agentCardUrl: `${gateway.url}/a2a/agents/kofi${wellKnown}`,
      endpoint: `${gateway.url}/a2a/agents/kofi`,
    });
    const url = `${gateway.url}/a2a/agents/kofi@globex`;
    expect((await get('/a2a/agents', {}, globex)).body.agents).toEqual([
      { name: 'kofi', role: 'Of globex.', agentCardUrl: `${url}${wellKnown}`, endpoint: url },
    ]);
    for (const { agentCardUrl } of body.agents) expect((await fetch(agentCardUrl as string)).status).toBe(200);
    await change('newer', { a2a_enabled: false });
    expect(JSON.stringify((await get('/a2a/agents')).body)).not.toContain('newer');
    await change('newer', { a2a_enabled: true });
  });
});

describe('two gateways on one database', () => {
  let others: TestGateway[];

  beforeAll(async () => {
    const env = { RIALTO_PUBLIC_URL: 'https://core.example' };
    others = [await startTestGateway(env, gateway), await startTestGateway(env, gateway)];
  });

  afterAll(() => Promise.all(others.map((other) => other.close())));

  it('RI-09 look like one: the same bytes, under the public URL, and handles at its host', async () => {
    for (const path of [wellKnown, '/a2a/kofi@core.example/agent.json', '/a2a/ko%40core.example/agent.json']) {
      const [one, another] = await Promise.all(others.map((other) => other.call('GET', path, undefined, null)));
      expect(one!.body).toMatchObject({ name: 'kofi', url: 'https://core.example/a2a/agents/kofi' });
      expect(another!.body).toEqual(one!.body);
      expect(another!.headers.get('etag')).toBe(one!.headers.get('etag'));
    }
  });

  it('RY-01 see changes through the other one at once', async () => {
    const seen = (path: string) => others[0]!.call('GET', path, undefined, null);
    for (let round = 0; round < 20; round++) {
      const description = `round ${round}`;
      await change('kofi', { description });
      await eventually(
        () => seen('/a2a/kofi/agent.json'),
        ({ body }) => body.description === description,
      );
    }
    await publish({ name: 'fleeting' });
    await eventually(
      () => seen('/a2a/fleeting/agent.json'),
      ({ status }) => status === 200,
    );
    await gateway.call('DELETE', '/api/a2a/published/fleeting');
    await eventually(
      () => seen('/a2a/fleeting/agent.json'),
      ({ status }) => status === 404,
    );
  });
});

describe('cards in production', () => {
  it('AN-01 AN-47 are public even without configured authentication, and declare jwtBearer', async () => {
    const bare = await startTestGateway({
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      A2A_SECRET: undefined as never,
      RIALTO_ENCRYPTION_KEY: Buffer.from('0123456789abcdef0123456789abcdef').toString('base64'),
      RIALTO_CONFORMANCE_AGENT: 'v1',
    });
    try {
      const card = (await bare.call('GET', wellKnown, undefined, null)).body;
      expect(card.name).toBe('conformance');
      expect(Object.keys(card.securitySchemes)).toEqual(['jwtBearer']);
      expect((await bare.call('GET', wellKnown, undefined, 'rlt_any')).status).toBe(200);
    } finally {
      await bare.close();
    }
  });
});
