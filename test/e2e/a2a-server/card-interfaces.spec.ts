import { closeSdkClients } from '../../support/clients/a2a-sdk.js';
import { OlderSdkClients } from '../../support/clients/a2a-sdk-older.js';
import { publish } from '../../support/clients/a2a.js';
import { askAt, interfacesOf, type ListedInterface } from '../../support/clients/card-interfaces.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const wellKnown = ['/.well-known/agent-card.json', '/.well-known/agent.json'];

/*
 * Reads every card of a gateway with agents in two orgs, and calls each interface that a card lists with the official
 * client of that version. Each agent answers with its own name.
 */
describe('RI-01: each interface of a card reaches the agent of the card', () => {
  let gateway: TestGateway;
  let clients: OlderSdkClients;
  const tokens: Record<string, string> = {};

  /** Publishes an agent that answers each message with its name and org. */
  const introduce = (org: string, name: string, more: object = {}) =>
    publish(
      gateway,
      {
        name,
        executor: { kind: 'echo', ask: `I am ${name}@${org}` },
        publishToCard: true,
        skills: [{ id: 'chat' }, { id: `only-${name}` }],
        ...more,
      },
      tokens[org],
    );
  const setDefault = (org: string, defaultAgent: string | null) =>
    gateway.call('PATCH', `/api/orgs/${org}`, { defaultAgent });

  beforeAll(async () => {
    gateway = await startTestGateway({ GRPC_PORT: '0' });
    clients = new OlderSdkClients(gateway);
    tokens.default = gateway.token;
    tokens.globex = await gateway.tokenOf('globex', 'gina', 'admin');
    await introduce('default', 'both', { handle: 'kofi' });
    await introduce('default', 'newer', { protocolVersions: ['1.0'] });
    await introduce('default', 'older', { protocolVersions: ['0.3'] });
    await introduce('default', 'hosted', { handle: 'esi@core.example' });
    await introduce('globex', 'both', { handle: 'kofi' });
    await introduce('globex', 'theirs');
  });
  afterAll(async () => {
    clients.close();
    closeSdkClients();
    await gateway.close();
  });

  /** Reads the cards at the paths, in each form, without and with a credential, and returns their interfaces. */
  async function listed(paths: readonly string[], name: string, token: string): Promise<ListedInterface[]> {
    const found = new Map<string, ListedInterface>();
    for (const path of paths) {
      for (const version of [undefined, '0.3', '1.0']) {
        for (const reader of [null, token]) {
          const headers: Record<string, string> = version === undefined ? {} : { 'a2a-version': version };
          const { status, body } = await gateway.call('GET', path, undefined, reader, headers);
          expect([path, status, body.name]).toEqual([path, 200, name]);
          for (const face of interfacesOf(body)) {
            const { spelling, binding, url } = face;
            found.set(JSON.stringify([spelling, face.version, binding, url]), face);
          }
        }
      }
    }
    return [...found.values()];
  }

  /** Calls each interface, and returns the answers that are not the expected one. */
  async function strays(
    faces: readonly ListedInterface[],
    token: string,
    expected: string,
    metadata?: Record<string, unknown>,
  ): Promise<string[]> {
    const wrong: string[] = [];
    for (const face of faces) {
      const answer = await askAt(face, clients, token, metadata).catch(String);
      const { spelling, version, binding, url } = face;
      if (answer !== expected) wrong.push(`${version} ${binding} ${url}, listed in ${spelling}: ${answer}`);
    }
    return wrong;
  }

  const kinds = (faces: readonly ListedInterface[]) =>
    faces.map(({ spelling, version, binding }) => `${spelling}: ${version} ${binding}`).sort();
  const newer = ['1.0: 1.0 GRPC', '1.0: 1.0 HTTP+JSON', '1.0: 1.0 JSONRPC'];
  const older = ['0.3: 0.3 HTTP+JSON', '0.3: 0.3 JSONRPC'];
  const olderListedInNewer = ['1.0: 0.3 HTTP+JSON', '1.0: 0.3 JSONRPC'];

  it.each([
    ['default', 'both', ['both', 'kofi', 'kofi@default'], [...older, ...olderListedInNewer, ...newer]],
    ['default', 'newer', ['newer'], newer],
    ['default', 'older', ['older'], older],
    ['default', 'hosted', ['hosted', 'esi@core.example'], [...older, ...olderListedInNewer, ...newer]],
    ['globex', 'both', ['both@globex', 'kofi@globex'], [...older, ...olderListedInNewer, ...newer]],
    ['globex', 'theirs', ['theirs@globex'], [...older, ...olderListedInNewer, ...newer]],
  ])('of %s: %s, by each of its names', async (org, name, words, expected) => {
    const token = tokens[org]!;
    const paths = words.flatMap((word) => [
      ...wellKnown.flatMap((path) => [`/a2a/${word}${path}`, `/a2a/agents/${word}${path}`]),
      `/a2a/${word}/agent.json`,
    ]);
    const faces = await listed(paths, name, token);
    expect(kinds(faces)).toEqual([...expected].sort());
    expect(await strays(faces, token, `I am ${name}@${org}`)).toEqual([]);
  });

  it('of the default agent, which also has gRPC of 0.3', async () => {
    const grpc = ['0.3: 0.3 GRPC', '1.0: 0.3 GRPC'];
    for (const [org, name] of [
      ['default', 'both'],
      ['default', 'hosted'],
      ['globex', 'theirs'],
    ] as const) {
      await setDefault(org, name);
      const token = tokens[org]!;
      const card = org === 'default' ? name : `${name}@${org}`;
      const faces = await listed([`/a2a/agents/${card}${wellKnown[0]}`], name, token);
      expect(kinds(faces)).toEqual([...older, ...olderListedInNewer, ...newer, ...grpc].sort());
      expect(await strays(faces, token, `I am ${name}@${org}`)).toEqual([]);
    }
    await setDefault('globex', null);
    expect(
      await strays(await listed(wellKnown, 'hosted', tokens.default!), tokens.default!, 'I am hosted@default'),
    ).toEqual([]);
    await setDefault('default', null);
  });

  it('of a shared card: the agent of each skill', async () => {
    const cards = [
      [wellKnown, 'Rialto', 'default'],
      [wellKnown.map((path) => `${path}?org=default`), 'Default', 'default'],
      [wellKnown.map((path) => `${path}?org=globex`), 'globex', 'globex'],
    ] as const;
    for (const standard of [null, 'both']) {
      await setDefault('default', standard);
      await setDefault('globex', standard);
      for (const [paths, title, org] of cards) {
        if (standard !== null && title === 'Rialto') continue;
        const faces = await listed(paths, title, tokens[org]!);
        expect(kinds(faces)).toEqual(['0.3: 0.3 JSONRPC', '1.0: 0.3 JSONRPC', '1.0: 1.0 JSONRPC']);
        for (const name of org === 'default' ? ['both', 'hosted'] : ['both', 'theirs'])
          for (const skillId of [`only-${name}`, `${name}.chat`])
            expect([skillId, ...(await strays(faces, tokens[org]!, `I am ${name}@${org}`, { skillId }))]).toEqual([
              skillId,
            ]);
      }
    }
    await setDefault('default', null);
    await setDefault('globex', null);
  });

  it.each(['default', 'globex'])('of the default agent of %s, when this gateway registers it itself', async (org) => {
    const [home] = org === 'default' ? ['both'] : ['theirs'];
    await setDefault(org, home);
    try {
      const url = `${gateway.url}/a2a/agents/${home}${org === 'default' ? '' : `@${org}`}`;
      const { status, body } = await gateway.call('POST', '/api/a2a/agents', { url });
      expect([status, body.detail ?? '']).toEqual([201, '']);
      expect(body.signature).toBeDefined();
      await gateway.call('DELETE', `/api/a2a/agents/${body.slug}`);
    } finally {
      await setDefault(org, null);
    }
  });
});
