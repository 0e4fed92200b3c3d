import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const path = '/api/a2a/published';
const echo = { kind: 'echo' };

describe('published agents', () => {
  let gateway: TestGateway;
  let globex: string;
  let viewer: string;
  let stub: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway();
    globex = await gateway.tokenOf('globex', 'gina', 'admin');
    viewer = await gateway.tokenOf('default', 'vera', 'viewer');
    stub = await startStubAgent({ name: 'outside' });
  });

  afterEach(async () => {
    for (const token of [gateway.token, globex])
      for (const { id } of (await gateway.call('GET', path, undefined, token)).body.items)
        await gateway.call('DELETE', `${path}/${id}`, undefined, token);
  });

  afterAll(async () => {
    await gateway.close();
    await stub.down();
  });

  const publish = (body: object = {}, token?: string) =>
    gateway.call(
      'POST',
      path,
      { name: 'kofi', description: 'Answers.', executor: echo, a2a_enabled: true, ...body },
      token,
    );
  const change = (body: object, name = 'kofi', token?: string) => gateway.call('PATCH', `${path}/${name}`, body, token);
  const cardOf = (name: string, token: string | null = null) =>
    gateway.call('GET', `/a2a/agents/${name}/.well-known/agent-card.json`, undefined, token);
  const row = async (id: string) => (await gateway.sql('select * from published_agents where id = $1', [id]))[0];

  it('returns the created agent, with defaults for omitted members, and the URLs of its doors', async () => {
    const { status, body } = await publish({ handle: 'ko', a2a_enabled: undefined });
    const url = `${gateway.url}/a2a/agents/kofi`;
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.any(String),
      orgId: expect.any(String),
      name: 'kofi',
      handle: 'ko',
      description: 'Answers.',
      executor: echo,
      a2a_enabled: false,
      a2a_accept_cleartext: true,
      publishToCard: false,
      skills: [{ id: 'chat', name: 'Chat', description: 'Answers.', tags: ['chat'] }],
      streaming: true,
      pushNotifications: true,
      extendedCard: true,
      defaultInputModes: ['text/plain', 'application/json', '*/*'],
      defaultOutputModes: ['text/plain', 'application/json'],
      version: '1.0.0',
      provider: null,
      documentationUrl: null,
      iconUrl: null,
      extensions: [],
      protocolVersions: ['1.0', '0.3'],
      history: 'context',
      source: 'api',
      urls: {
        jsonRpc: url,
        rest: url,
        card: `${url}/.well-known/agent-card.json`,
        handleCard: `${gateway.url}/a2a/ko/agent.json`,
        keys: `${gateway.url}/a2a/ko/keys.json`,
      },
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect((await gateway.call('GET', `${path}/${body.id}`)).body).toEqual(body);
    expect((await gateway.call('GET', `${path}/kofi`)).body).toEqual(body);
    expect((await gateway.call('GET', path)).body).toEqual({ items: [body], nextCursor: null });
    expect((await gateway.call('GET', `${path}?q=ANSW`)).body.items).toHaveLength(1);
    expect((await gateway.call('GET', `${path}?q=other`)).body.items).toEqual([]);
  });

  it('RI-03 RI-04 opts in: without a2a_enabled it is not on a card, and it can be enabled and disabled', async () => {
    await publish({ a2a_enabled: undefined });
    expect((await cardOf('kofi')).status).toBe(404);
    for (const enabled of [true, false, true]) {
      expect((await change({ a2a_enabled: enabled })).body.a2a_enabled).toBe(enabled);
      expect((await cardOf('kofi')).status).toBe(enabled ? 200 : 404);
      expect((await cardOf('kofi', gateway.token)).status).toBe(enabled ? 200 : 404);
    }
    expect((await change({ description: 'x' })).body.a2a_enabled).toBe(true);
  });

  it('RY-01 RY-03 serves the card of an agent as soon as it is created, and of no other', async () => {
    expect((await cardOf('kofi')).status).toBe(404);
    await publish();
    expect((await cardOf('kofi')).body).toMatchObject({ name: 'kofi', description: 'Answers.' });
    const unknown = await cardOf('nobody');
    expect(unknown.headers.get('content-type')).toMatch('application/problem+json');
    expect(unknown.body).toMatchObject({ status: 404, code: 'not_found' });
  });

  it('AN-02 RI-14 shows every change on the card, and null removes a value', async () => {
    await publish();
    const declared = {
      description: 'New words.',
      skills: [{ id: 'deploy', name: 'Deploy', description: 'Ships it.', tags: ['ops'], examples: ['ship it'] }],
      defaultInputModes: ['text/markdown'],
      defaultOutputModes: ['image/png'],
      version: '2.0.0',
      provider: { organization: 'Acme', url: 'https://acme.example' },
      documentationUrl: 'https://acme.example/docs',
      iconUrl: 'https://acme.example/icon.png',
    };
    const { body } = await change({ ...declared, handle: 'ko', streaming: false, pushNotifications: false });
    expect(body).toMatchObject(declared);
    const card = (await cardOf('kofi')).body;
    expect(card).toMatchObject({ ...declared, capabilities: { streaming: false, pushNotifications: false } });
    const cleared = { provider: null, documentationUrl: null, iconUrl: null, handle: null };
    expect((await change(cleared)).body).toMatchObject(cleared);
    for (const name of ['provider', 'documentationUrl', 'iconUrl'])
      expect((await cardOf('kofi')).body).not.toHaveProperty(name);
    expect((await gateway.call('GET', '/a2a/ko/agent.json')).status).toBe(404);
  });

  it('RI-14 the types of messages that an agent accepts, and its skill texts, follow its own card', async () => {
    await publish();
    const send = async (part: object) => {
      const message = { messageId: `m-${Math.random()}`, role: 'ROLE_USER', parts: [part] };
      const { status, body } = await gateway.call('POST', '/a2a/agents/kofi/message:send', { message });
      return [status, body.error?.details?.[0]?.reason];
    };
    const refused = [400, 'CONTENT_TYPE_NOT_SUPPORTED'];
    await change({ defaultInputModes: ['text/plain'] });
    expect([await send({ text: 'a' }), await send({ data: { a: 1 } })]).toEqual([[200, undefined], refused]);
    const skills = [{ id: 'count', name: 'Count', description: 'Counts words.', examples: ['how many?'] }];
    await change({ defaultInputModes: ['application/json'], skills });
    expect((await cardOf('kofi')).body).toMatchObject({ defaultInputModes: ['application/json'], skills });
    expect([await send({ text: 'a' }), await send({ data: { a: 1 } })]).toEqual([refused, [200, undefined]]);
  });

  it('renames: the old name and its doors are gone, and two concurrent changes both apply', async () => {
    await publish();
    expect((await change({ name: 'kwame' })).body.urls.card).toMatch('/a2a/agents/kwame/');
    expect([(await cardOf('kofi')).status, (await cardOf('kwame')).status]).toEqual([404, 200]);
    await Promise.all([change({ version: '3' }, 'kwame'), change({ streaming: false }, 'kwame')]);
    expect((await gateway.call('GET', `${path}/kwame`)).body).toMatchObject({ version: '3', streaming: false });
  });

  it('RY-07 archives: card, index and list omit it, its row stays, and its name and handle are free', async () => {
    const { body } = await publish({ handle: 'ko' });
    expect((await gateway.call('DELETE', `${path}/kofi`)).status).toBe(204);
    expect((await cardOf('kofi')).status).toBe(404);
    expect((await gateway.call('GET', '/a2a/agents', undefined, null)).body.agents).toEqual([]);
    for (const gone of ['kofi', body.id as string]) {
      expect((await gateway.call('GET', `${path}/${gone}`)).status).toBe(404);
      expect((await change({ version: '2' }, gone)).status).toBe(404);
      expect((await gateway.call('DELETE', `${path}/${gone}`)).status).toBe(404);
    }
    expect((await row(body.id)).archived_at).not.toBeNull();
    expect((await publish({ handle: 'ko' })).body.id).not.toBe(body.id);
  });

  it('keeps names and handles of an org in one namespace, separate from other orgs', async () => {
    await publish({ handle: 'ko' });
    for (const taken of [
      { name: 'kofi' },
      { name: 'ko' },
      { name: 'a', handle: 'kofi' },
      { name: 'a', handle: 'ko' },
    ]) {
      const refused = await publish(taken);
      expect(refused.body).toMatchObject({ status: 409, code: 'slug_taken', hint: expect.any(String) });
    }
    await publish({ name: 'other' });
    expect((await change({ name: 'ko' }, 'other')).status).toBe(409);
    expect((await change({ handle: 'kofi' }, 'other')).status).toBe(409);
    expect((await change({ handle: 'ko' })).status).toBe(200);
    expect((await publish({ handle: 'ko' }, globex)).status).toBe(201);
    expect((await gateway.call('GET', path, undefined, globex)).body.items).toHaveLength(1);
  });

  it('has no race for a name: one of ten concurrent requests gets it', async () => {
    const wishes = Array.from({ length: 10 }, (_, index) =>
      publish(index % 2 ? { name: `n${index}`, handle: 'kofi' } : {}),
    );
    const statuses = (await Promise.all(wishes)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
  });

  it.each([
    ['an invalid name', { name: 'Kofi A' }, 'name'],
    ['a reserved name', { name: 'agents' }, 'name'],
    ['a reserved handle', { handle: 'tasks' }, 'handle'],
    ['an invalid handle', { handle: 'a/b' }, 'handle'],
    ['no description', { description: ' ' }, 'description'],
    ['an unknown executor', { executor: { kind: 'shell' } }, 'executor.kind'],
    ['the conformance executor', { executor: { kind: 'conformance' } }, 'executor.kind'],
    ['an executor with an unknown member', { executor: { kind: 'echo', command: 'x' } }, 'executor'],
    ['an echo that takes too long', { executor: { kind: 'echo', delayMs: 600_001 } }, 'executor.delayMs'],
    [
      'a remote executor with an unknown agent',
      { executor: { kind: 'remote', agentId: 'nobody' } },
      'executor.agentId',
    ],
    ['one skill id twice', { skills: [{ id: 'a' }, { id: 'a' }] }, 'skills'],
    ['an invalid media type', { defaultInputModes: ['text'] }, 'defaultInputModes.0'],
    ['an icon that is a script', { iconUrl: 'javascript:alert(1)' }, 'iconUrl'],
    ['no version of the protocol', { protocolVersions: [] }, 'protocolVersions'],
    ['an extension of the reserved namespace', { extensions: [{ uri: 'urn:rialto:identity:v1' }] }, 'extensions.0.uri'],
  ])('refuses %s', async (_what, body, field) => {
    const refused = await publish(body);
    expect(refused.body).toMatchObject({ status: 400, code: 'invalid_params', violations: [{ field }] });
    expect((await gateway.call('GET', path)).body.items).toEqual([]);
  });

  it.each(['id', 'orgId', 'source', 'revision', 'createdAt', 'archivedAt', 'executorSecret', 'secret', 'signatures'])(
    'abuse 13: refuses %s in a body',
    async (name) => {
      expect((await publish({ [name]: 'x' })).status).toBe(400);
      await publish();
      expect((await change({ [name]: 'x' })).status).toBe(400);
    },
  );

  it('RI-12 ignores security members of an agent', async () => {
    const none = { securitySchemes: {}, securityRequirements: [], security: [] };
    await publish({ ...none, skills: [{ id: 'chat', securityRequirements: [], security: [] }] });
    await change(none);
    const { body } = await cardOf('kofi');
    expect(body.securitySchemes).toHaveProperty('jwtBearer');
    expect(body.securityRequirements).toEqual([{ schemes: { jwtBearer: { list: [] } } }]);
    expect(body.skills[0]).not.toHaveProperty('security');
  });

  it('stores the id of the registered agent of a remote executor, and finds none of another org', async () => {
    const { body } = await gateway.call('POST', '/api/a2a/agents', { url: stub.url, slug: 'outside' });
    const executor = { kind: 'remote', agentId: 'outside', skillId: 'work' };
    expect((await publish({ executor })).body.executor).toEqual({ ...executor, agentId: body.id });
    const unknown = await publish({ executor: { ...executor, skillId: 'wrok' } });
    expect([unknown.status, unknown.body.detail]).toEqual([
      422,
      'executor.skillId: the agent "outside" has no skill "wrok"; its skills: work',
    ]);
    await gateway.sql(`update agent_cards set card = null where slug = 'outside'`);
    expect((await change({ executor: { ...executor, skillId: 'wrok' } })).status).toBe(200);
    expect((await publish({ executor: { kind: 'remote', agentId: body.id } }, globex)).status).toBe(400);
    expect((await change({ executor: { kind: 'remote', agentId: 'gone' } })).status).toBe(400);
    await gateway.call('DELETE', '/api/a2a/agents/outside');
  });

  it('checks the URL of an http executor with the outbound guard', async () => {
    for (const url of [
      'http://169.254.169.254/',
      'file:///etc/passwd',
      'http://10.0.0.1/',
      'https://u:p@x.example/',
      'nonsense',
    ])
      expect((await publish({ executor: { kind: 'http', url } })).body).toMatchObject({
        status: 422,
        code: 'url_not_allowed',
      });
  });

  it('creates the secret of an http executor, seals it, shows it once, and replaces it on request', async () => {
    const { body } = await publish({ executor: { kind: 'http', url: stub.url } });
    expect(body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(Buffer.from(body.secret.slice(6), 'base64')).toHaveLength(32);
    const { secret, ...shown } = body;
    expect((await gateway.call('GET', `${path}/kofi`)).body).toEqual(shown);
    expect((await row(body.id)).executor_secret).toMatch(/^v1\./);
    expect((await change({ executor: { kind: 'http', url: `${stub.url}/other` } })).body).not.toHaveProperty('secret');

    const rotated = await gateway.call('POST', `${path}/kofi/secret`);
    expect(rotated.status).toBe(201);
    expect(rotated.body.secret).toMatch(/^whsec_/);
    expect(rotated.body.secret).not.toBe(secret);
    expect(gateway.log.join('\n')).not.toContain(secret.slice(6));
    const events = await gateway.call('GET', '/api/audit/events?limit=200');
    expect(JSON.stringify(events.body)).not.toContain('whsec_');

    expect((await change({ executor: echo })).body).not.toHaveProperty('secret');
    expect((await row(body.id)).executor_secret).toBeNull();
    expect((await gateway.call('POST', `${path}/kofi/secret`)).status).toBe(422);
    expect((await change({ executor: { kind: 'http', url: stub.url } })).body.secret).toMatch(/^whsec_/);
  });

  it('RE-79 accepts trust.publish_to_a2a for publishToCard, and the card of the org follows', async () => {
    const skills = async () =>
      (await gateway.call('GET', '/.well-known/agent-card.json?org=default', undefined, null)).body.skills?.map(
        ({ id }: { id: string }) => id,
      );
    await publish({ trust: { publish_to_a2a: true } });
    expect((await gateway.call('GET', `${path}/kofi`)).body.publishToCard).toBe(true);
    expect(await skills()).toEqual(['chat']);
    await change({ publishToCard: false });
    expect(await skills()).toBeUndefined();
    await change({ trust: { publish_to_a2a: true } });
    expect(await skills()).toEqual(['chat']);
    await change({ a2a_enabled: false });
    expect(await skills()).toBeUndefined();
  });

  it('audits every change with the act and its object', async () => {
    await publish();
    await change({ version: '2' });
    await gateway.call('DELETE', `${path}/kofi`);
    const events = (await gateway.call('GET', '/api/audit/events?limit=200')).body.items as any[];
    const verbs = events.filter(({ verb }) => verb?.startsWith('published.')).map(({ verb }) => verb);
    expect(verbs).toEqual(expect.arrayContaining(['published.create', 'published.change', 'published.delete']));
  });

  it('can be changed by admins and read by members', async () => {
    await publish();
    expect((await gateway.call('GET', path, undefined, viewer)).body.items).toHaveLength(1);
    expect((await publish({ name: 'b' }, viewer)).status).toBe(403);
    expect((await change({ version: '2' }, 'kofi', viewer)).status).toBe(403);
    expect((await gateway.call('GET', `${path}/kofi`, undefined, globex)).status).toBe(404);
    expect((await change({ version: '2' }, 'kofi', globex)).status).toBe(404);
  });

  it('has default agents: PATCH /api/orgs accepts an existing one', async () => {
    const set = (defaultAgent: string | null) => gateway.call('PATCH', '/api/orgs/default', { defaultAgent });
    expect((await set('kofi')).body).toMatchObject({ status: 400, violations: [{ field: 'defaultAgent' }] });
    await publish({}, globex);
    expect((await set('kofi')).status).toBe(400);
    const { body } = await publish();
    expect((await set(body.id)).status).toBe(400);
    expect((await set('kofi')).body.defaultAgent).toBe('kofi');
    expect((await set(null)).body.defaultAgent).toBeNull();
  });
});

describe('the number of published agents', () => {
  it('is limited by RIALTO_MAX_AGENTS_PER_ORG for each org, and archived ones make room', async () => {
    const gateway = await startTestGateway({ RIALTO_MAX_AGENTS_PER_ORG: '2' });
    try {
      const publish = (name: string) =>
        gateway.call('POST', path, { name, description: 'x', executor: echo }, gateway.token);
      const statuses = (await Promise.all(['a', 'b', 'c', 'd'].map(publish))).map(({ status }) => status).sort();
      expect(statuses).toEqual([201, 201, 422, 422]);
      const [{ id }] = (await gateway.call('GET', path)).body.items;
      await gateway.call('DELETE', `${path}/${id}`);
      expect((await publish('e')).status).toBe(201);
    } finally {
      await gateway.close();
    }
  });
});
