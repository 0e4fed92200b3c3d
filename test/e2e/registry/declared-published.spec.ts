import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PublishedService } from '../../../src/registry/published.service.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const wellKnown = '/.well-known/agent-card.json';
const root = mkdtempSync(join(tmpdir(), 'rialto-declared-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const cardOf = (gateway: TestGateway, name: string) =>
  gateway.call('GET', `/a2a/agents/${name}${wellKnown}`, undefined, null);
const idOf = async (gateway: TestGateway, name: string): Promise<string | undefined> =>
  (await gateway.call('GET', `/api/a2a/published/${name}`)).body.id;

describe('agents of the configuration file', () => {
  const file = join(root, 'rialto.config.json');
  const started: TestGateway[] = [];
  const env = { RIALTO_CONFIG_FILE: file, SUPPORT_KEY: 'a-key-of-16-bytes' };
  const write = (...agents: object[]) => writeFileSync(file, JSON.stringify({ agents }));
  const support = {
    name: 'support',
    description: 'Answers customers.',
    skills: [{ id: 'refund', name: 'Refund', description: 'Pays back.', tags: ['money'] }],
    apiKeyEnv: 'SUPPORT_KEY',
    streaming: false,
  };

  afterAll(async () => {
    for (const gateway of started.reverse()) await gateway.close();
  });

  /** Starts another gateway. Only the first one stays, because a database has a limited number of connections. */
  const start = async (): Promise<TestGateway> => {
    await Promise.all(started.splice(1).map((gateway) => gateway.close()));
    const gateway = await startTestGateway(env, started[0]);
    started.push(gateway);
    return gateway;
  };

  it('AN-96 AN-02 RI-03 an entry of the configuration creates an agent with its card and enables it', async () => {
    write(support, { name: 'plain' });
    const gateway = await start();
    expect((await cardOf(gateway, 'support')).body).toMatchObject({
      name: 'support',
      description: 'Answers customers.',
      capabilities: { streaming: false },
      skills: support.skills,
      securitySchemes: { jwtBearer: expect.anything(), apiKey: { type: 'http', scheme: 'bearer' } },
    });
    expect((await cardOf(gateway, 'plain')).body).toMatchObject({ skills: [{ id: 'chat' }] });
    const { body } = await gateway.call('GET', '/api/a2a/published/support');
    expect(body).toMatchObject({ source: 'config', a2a_enabled: true, executor: { kind: 'echo' } });
  });

  it('AN-95 the key that apiKeyEnv names works for that agent only, and is not stored', async () => {
    const gateway = started[0]!;
    const published = gateway.gateway.get(PublishedService);
    const [one, other] = await Promise.all([published.resolve('support'), published.resolve('plain')]);
    expect([published.staticBearerOf(one!), published.staticBearerOf(other!)]).toEqual([env.SUPPORT_KEY, undefined]);
    const rows = JSON.stringify(await gateway.sql('select * from published_agents'));
    expect(rows).not.toContain(env.SUPPORT_KEY);
    expect(JSON.stringify((await gateway.call('GET', '/api/a2a/published')).body)).not.toContain(env.SUPPORT_KEY);
    expect(gateway.log.join('\n')).not.toContain(env.SUPPORT_KEY);
  });

  it('is changed by its file and not over the API', async () => {
    const gateway = started[0]!;
    for (const [method, body] of [['PATCH', { version: '2' }], ['DELETE']] as const) {
      const refused = await gateway.call(method, '/api/a2a/published/support', body);
      expect(refused.body).toMatchObject({
        status: 409,
        code: 'conflict',
        hint: expect.stringContaining('declaration'),
      });
    }
  });

  it('follows the file at the next start, and is the same agent when it returns', async () => {
    const id = await idOf(started[0]!, 'support');
    write({ ...support, description: 'Answers everyone.' });
    const second = await start();
    expect((await cardOf(second, 'support')).body.description).toBe('Answers everyone.');
    expect((await cardOf(second, 'plain')).status).toBe(404);
    expect(await idOf(second, 'support')).toBe(id);
    write();
    const third = await start();
    expect((await cardOf(third, 'support')).status).toBe(404);
    write(support);
    const fourth = await start();
    expect(await idOf(fourth, 'support')).toBe(id);
    const [{ count }] = await fourth.sql(`select count(*)::int as count from published_agents`);
    expect(count).toBe(2);
  });

  it('leaves unchanged rows alone, with any number of concurrent starts', async () => {
    const executor = { kind: 'http', url: 'https://service.example/work?code=canary' };
    write(support, { name: 'service', executor });
    await start();
    const before = await started[0]!.sql('select * from published_agents order by id');
    expect(JSON.stringify(before)).not.toContain('canary');
    await Promise.all([start(), start()]);
    expect(await started[0]!.sql('select * from published_agents order by id')).toEqual(before);
  });

  it('logs a bad one once and keeps all others, and also its own row', async () => {
    const off = { name: 'off', a2a_enabled: false };
    const bad = { ...support, executor: { kind: 'remote', agentId: 'nobody' } };
    write(bad, { name: 'Not A Name' }, { name: 'twin' }, { name: 'twin' }, { name: 'taken' }, off);
    await started[0]!.call('POST', '/api/a2a/published', {
      name: 'taken',
      description: 'x',
      executor: { kind: 'mailbox' },
    });
    const gateway = await start();
    const complaints = gateway.log
      .filter((line) => line.includes('was not changed'))
      .map((line) => JSON.parse(line).agent);
    expect(complaints.sort()).toEqual(['Not A Name', 'support', 'taken', 'twin']);
    expect((await cardOf(gateway, 'support')).body.description).toBe('Answers customers.');
    expect((await cardOf(gateway, 'twin')).status).toBe(200);
    expect((await cardOf(gateway, 'off')).status).toBe(404);
    expect((await gateway.call('GET', '/api/a2a/published/off')).body).toMatchObject({ a2a_enabled: false });
    expect((await gateway.call('GET', '/api/a2a/published/taken')).body).toMatchObject({ source: 'api' });
  });
});

describe('the agents folder', () => {
  const folder = join(root, 'agents');
  let gateway: TestGateway;

  const put = (name: string, profile?: string) => {
    mkdirSync(join(folder, name), { recursive: true });
    if (profile !== undefined) writeFileSync(join(folder, name, 'profile.yaml'), profile);
  };
  const names = async () =>
    (await gateway.call('GET', '/a2a/agents', undefined, null)).body.agents.map(({ name }: { name: string }) => name);

  beforeAll(async () => {
    put('writer', 'role: Writes text on request.\nworkflow:\n  - name: secret-plan\nllm: some-model\n');
    put('plain');
    put('.git');
    put('__pycache__');
    writeFileSync(join(folder, 'README.md'), 'not an agent');
    gateway = await startTestGateway({ RIALTO_AGENTS_DIR: folder });
  });

  afterAll(() => gateway.close());

  it('RY-08 RY-09 has an agent for each directory: its role, text only, one coarse skill, no internals', async () => {
    expect(await names()).toEqual(['plain', 'writer']);
    const { body } = await cardOf(gateway, 'writer');
    expect(body).toMatchObject({
      name: 'writer',
      description: 'Writes text on request.',
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [{ id: 'chat', name: 'Chat', description: 'Writes text on request.', tags: ['chat'] }],
      capabilities: { streaming: true, pushNotifications: true },
    });
    expect(JSON.stringify(body)).not.toMatch(/secret-plan|some-model/);
    expect((await cardOf(gateway, 'plain')).body.description).toBe('The agent plain.');
  });

  it('says which member is probably misspelled, and can turn an agent off', async () => {
    put('off', 'role: Not yet.\nexecutr: { kind: http }\nsteps: []\na2a_enabled: false\n');
    await eventually(
      () => gateway.call('GET', '/api/a2a/published/off'),
      ({ body }) => body.a2a_enabled === false,
    );
    expect((await cardOf(gateway, 'off')).status).toBe(404);
    expect(await names()).toEqual(['plain', 'writer']);
    expect(gateway.log.filter((line) => line.includes('did you mean'))).toEqual([
      expect.stringContaining('the member \\"executr\\" is ignored; did you mean \\"executor\\"?'),
    ]);
    rmSync(join(folder, 'off'), { recursive: true });
  });

  const says = (name: string, description: string) =>
    eventually(
      () => cardOf(gateway, name),
      ({ body }) => body.description === description,
    );
  const areNamed = (...expected: string[]) => eventually(names, (found) => found.join() === expected.join());

  it('RY-01 RY-45 serves an added directory, follows its profile, and forgets it when it is removed', async () => {
    put('late', 'role: Came later.');
    await says('late', 'Came later.');
    const id = await idOf(gateway, 'late');
    put('late', 'role: Thought again.\nhistory: agent\nskills: [{ id: think }]\n');
    await says('late', 'Thought again.');
    const { body } = await gateway.call('GET', '/api/a2a/published/late');
    expect(body).toMatchObject({ id, history: 'agent', source: 'folder', skills: [{ id: 'think' }] });
    rmSync(join(folder, 'late'), { recursive: true });
    await areNamed('plain', 'writer');
    put('late');
    await says('late', 'The agent late.');
    expect(await idOf(gateway, 'late')).toBe(id);
    rmSync(join(folder, 'late'), { recursive: true });
    await areNamed('plain', 'writer');
  });

  it('RY-45 logs a bad profile once and leaves its agent and all others unchanged', async () => {
    put('broken', 'role: [unclosed');
    put('late', 'name: Not A Name');
    put('nul', 'role: "a\\0b"');
    put('writer', ': : :\n- x');
    put('good', 'role: Fine.');
    await areNamed('good', 'plain', 'writer');
    expect((await cardOf(gateway, 'writer')).body.description).toBe('Writes text on request.');
    put('plain', 'role: Plain words.');
    await says('plain', 'Plain words.');
    expect(gateway.log.filter((line) => line.includes('was not changed'))).toHaveLength(4);
  });
});

describe('RIALTO_CONFORMANCE_AGENT', () => {
  const profiles = [
    ['v1', { streaming: true, pushNotifications: true, extendedAgentCard: false }],
    ['nocaps', { streaming: false, pushNotifications: false, extendedAgentCard: false }],
    [
      'reqext',
      {
        streaming: true,
        extensions: [{ uri: 'urn:a2a:tck:required-extension', required: true }],
        extendedAgentCard: false,
      },
    ],
  ] as const;

  it('publishes the conformance agent as the default one, in the requested form, and removes it again', async () => {
    const first = await startTestGateway({ RIALTO_CONFORMANCE_AGENT: 'v03' });
    try {
      const older = (await first.call('GET', wellKnown, undefined, null)).body;
      expect(older).toMatchObject({ name: 'conformance', protocolVersion: '0.3', capabilities: { streaming: true } });
      expect(older).not.toHaveProperty('supportedInterfaces');
      for (const [profile, capabilities] of profiles) {
        const gateway = await startTestGateway({ RIALTO_CONFORMANCE_AGENT: profile }, first);
        const card = (await gateway.call('GET', wellKnown, undefined, null)).body;
        await gateway.close();
        expect(card).toMatchObject({ name: 'conformance', capabilities });
        expect(card.supportedInterfaces.every((face: any) => face.protocolVersion === '1.0')).toBe(true);
        expect(card).not.toHaveProperty('protocolVersion');
        expect(JSON.stringify(card)).not.toContain('urn:rialto');
      }
      const without = await startTestGateway({}, first);
      expect((await without.call('GET', wellKnown, undefined, null)).body.name).toBe('Rialto');
      expect((await cardOf(without, 'conformance')).status).toBe(404);
      await without.close();
    } finally {
      await first.close();
    }
  });
});
