import fc from 'fast-check';
import { contentHash, diffCards, normaliseCard, type NormalisedCard } from './card.js';

const url = 'https://agent.example/.well-known/agent-card.json';
const skill = { id: 'deploy', name: 'Deploy', description: 'Deploys', tags: ['ops'] };
const newer = {
  name: 'Vercel Ops',
  description: 'd',
  version: '1.2.3',
  supportedInterfaces: [
    { url: 'https://agent.example/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 't' },
    { url: 'agent.example:443', protocolBinding: 'GRPC', protocolVersion: '1.0.1' },
    { url: '/old', protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
    { url: 'https://agent.example/x', protocolBinding: 'https://bindings.example/x', protocolVersion: '1.0' },
  ],
  capabilities: { streaming: true, extendedAgentCard: true },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['application/json'],
  skills: [skill],
};
const older = {
  protocolVersion: '0.3.0',
  name: 'Old',
  description: 'd',
  version: '1',
  url: 'https://agent.example/rpc',
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [
    { url: 'https://agent.example/rpc', transport: 'JSONRPC' },
    { url: 'https://agent.example/rest', transport: 'HTTP+JSON' },
  ],
  capabilities: { pushNotifications: true },
  supportsAuthenticatedExtendedCard: true,
  skills: [skill],
};

function read(raw: unknown): NormalisedCard {
  const result = normaliseCard(raw, { url });
  if (!result.ok) throw new Error(JSON.stringify(result.violations));
  return result.card;
}
function fieldsOf(raw: unknown): string[] {
  const result = normaliseCard(raw, { url });
  return result.ok ? [] : result.violations.map(({ field }) => field);
}

describe('normaliseCard', () => {
  it('RE-60 reads a v1.0 card', () => {
    expect(read(newer)).toEqual({
      name: 'Vercel Ops',
      description: 'd',
      version: '1.2.3',
      protocolVersions: ['1.0', '0.3'],
      interfaces: [
        { url: 'https://agent.example/a2a', binding: 'JSONRPC', version: '1.0', tenant: 't' },
        { url: 'agent.example:443', binding: 'GRPC', version: '1.0' },
        { url: 'https://agent.example/old', binding: 'HTTP+JSON', version: '0.3' },
        { url: 'https://agent.example/x', binding: 'https://bindings.example/x', version: '1.0' },
      ],
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
      skills: [skill],
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['application/json'],
      securitySchemes: {},
    });
  });

  it('RI-06 lists the extensions that a caller must use', () => {
    const extensions = [{ uri: 'urn:a', required: true }, { uri: 'urn:b' }, { required: true }, 'urn:c'];
    expect(read({ ...newer, capabilities: { extensions } }).requiredExtensions).toEqual(['urn:a']);
    expect(read({ ...newer, capabilities: { extensions: 'urn:a' } })).not.toHaveProperty('requiredExtensions');
  });

  it('reads a v0.3 card: the main url first, duplicates removed', () => {
    expect(read(older)).toMatchObject({
      protocolVersions: ['0.3'],
      interfaces: [
        { url: 'https://agent.example/rpc', binding: 'JSONRPC', version: '0.3' },
        { url: 'https://agent.example/rest', binding: 'HTTP+JSON', version: '0.3' },
      ],
      capabilities: { streaming: false, pushNotifications: true, extendedAgentCard: true },
    });
  });

  it('reads a hybrid card, the newer interfaces first', () => {
    const card = read({ ...older, ...newer, protocolVersion: '0.3.0' });
    expect(card.protocolVersions).toEqual(['1.0', '0.3']);
    expect(card.interfaces.map((entry) => entry.url).slice(-2)).toEqual([
      'https://agent.example/rpc',
      'https://agent.example/rest',
    ]);
  });

  it.each(['www.example.com/a2a', 'example.com:8080', 'localhost:9000/rpc', 'agent.example?x=1'])(
    '(C08) names a url without a scheme: %s',
    (bare) => {
      const field = { older: '/url', newer: '/supportedInterfaces' };
      const base = { name: 'A', skills: [] };
      for (const [kind, card] of [
        ['older', { ...base, url: bare }],
        [
          'newer',
          { ...base, supportedInterfaces: [{ url: bare, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] },
        ],
      ] as const)
        expect(normaliseCard(card, { url: 'http://127.0.0.1:9/.well-known/agent-card.json' })).toEqual({
          ok: false,
          violations: [{ field: field[kind], description: expect.stringContaining(`"${bare}" has no scheme`) }],
        });
    },
  );

  it('reads an old agent.json: a url with few other members, relative to its agent', () => {
    const old = { name: ' A ', url: 'rpc', skills: [] };
    const result = normaliseCard(old, { url: 'https://h.example/team/.well-known/agent.json?x=1' });
    expect(result).toMatchObject({
      ok: true,
      card: {
        name: 'A',
        description: '',
        version: '',
        interfaces: [{ url: 'https://h.example/team/rpc', binding: 'JSONRPC', version: '0.3' }],
      },
    });
    expect(read({ ...old, protocolVersion: '0.2.5' }).protocolVersions).toEqual(['0.3']);
  });

  it('reads snake_case names and ProtoJSON’s absent and null members', () => {
    const card = read({
      name: 'S',
      supported_interfaces: [{ url: 'https://a.example/', protocol_binding: 'jsonrpc', protocol_version: '1.0' }],
      capabilities: { push_notifications: true, extended_agent_card: true, streaming: null },
      default_input_modes: ['a/b'],
      provider: { organization: 'O', url: 'https://o.example' },
    });
    expect(card).toMatchObject({
      skills: [],
      interfaces: [{ binding: 'JSONRPC', version: '1.0' }],
      capabilities: { streaming: false, pushNotifications: true, extendedAgentCard: true },
      defaultInputModes: ['a/b'],
      provider: { organization: 'O', url: 'https://o.example' },
    });
  });

  it('RE-11 keeps an inputSchema verbatim, and unknown members in raw', () => {
    const inputSchema = { type: 'object', required: ['snake_case', 'camelCase'], 'x-own': [null] };
    const raw = { ...newer, skills: [{ ...skill, inputSchema, examples: ['e', 5] }], 'x-more': 1 };
    const result = normaliseCard(raw, { url });
    expect(result).toMatchObject({ ok: true, raw, card: { skills: [{ ...skill, inputSchema, examples: ['e'] }] } });
  });

  it.each<[string, unknown, string[]]>([
    ['no object', 'x', ['']],
    ['null', null, ['']],
    ['RE-54 no name', { ...newer, name: undefined }, ['/name']],
    ['an empty name', { ...newer, name: ' ' }, ['/name']],
    ['a long name', { ...newer, name: 'x'.repeat(300) }, ['/name']],
    ['a long description', { ...newer, description: 'x'.repeat(20_000) }, ['/description']],
    ['no url', { name: 'a', skills: [] }, ['/url']],
    ['no skills on v0.3', { ...older, skills: undefined }, ['/skills']],
    ['skills that are not a list', { ...newer, skills: {} }, ['/skills']],
    ['too many skills', { ...newer, skills: Array.from({ length: 501 }, (_, id) => ({ id: `s${id}` })) }, ['/skills']],
    ['a skill without id', { ...newer, skills: [skill, { name: 'x' }] }, ['/skills/1/id']],
    ['a skill that is text', { ...newer, skills: ['x'] }, ['/skills/0']],
    ['the same id twice', { ...newer, skills: [skill, skill] }, ['/skills/1/id']],
    ['an inputSchema that is text', { ...newer, skills: [{ ...skill, inputSchema: 'x' }] }, ['/skills/0/inputSchema']],
    ['a scheme that is not http', { ...older, url: 'file:///etc/passwd', additionalInterfaces: [] }, ['/url']],
    [
      'only a version of the future',
      { ...newer, supportedInterfaces: [{ url: 'https://a.example', protocolVersion: '2.0' }] },
      ['/supportedInterfaces'],
    ],
    [
      'only a custom binding',
      { ...newer, supportedInterfaces: [newer.supportedInterfaces[3]] },
      ['/supportedInterfaces'],
    ],
    ['a NUL', { ...newer, description: 'a\u0000' }, ['']],
    ['several faults', { skills: [{}] }, ['/name', '/skills/0/id', '/url']],
  ])('refuses %s', (_name, raw, fields) => expect(fieldsOf(raw)).toEqual(fields));

  it.each([
    [{ metadata: { costPerTask: 2 } }, 2, undefined],
    [{ costPerTask: 0.5 }, 0.5, undefined],
    [{ cost_per_task: 3 }, 3, undefined],
    [{ 'x-cost-per-task': { amount: 1, currency: 'EUR' } }, 1, 'EUR'],
    [{ capabilities: { extensions: [{ uri: 'u' }, { uri: 'v', params: { costPerTask: 4 } }] } }, 4, undefined],
    [{ costPerTask: 5, metadata: { costPerTask: 6 } }, 6, undefined],
    [{ costPerTask: -1 }, undefined, undefined],
    [{ costPerTask: '1' }, undefined, undefined],
    [{}, undefined, undefined],
  ])('RE-61 reads the price in %j', (more, cost, currency) => {
    const card = read({ ...newer, ...more });
    expect([card.costPerTask, card.costCurrency]).toEqual([cost, currency]);
  });

  it('reads security schemes of both versions in one shape', () => {
    const securitySchemes = {
      a: { type: 'apiKey', in: 'header', name: 'X-Key' },
      b: { type: 'http', scheme: 'bearer' },
      c: { httpAuthSecurityScheme: { scheme: 'bearer' } },
      d: { type: 'mutualTLS' },
      e: { type: 'odd' },
      f: 5,
    };
    expect(read({ ...newer, securitySchemes }).securitySchemes).toEqual({
      a: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } },
      b: { httpAuthSecurityScheme: { scheme: 'bearer' } },
      c: { httpAuthSecurityScheme: { scheme: 'bearer' } },
      d: { mtlsSecurityScheme: {} },
    });
  });

  it('never throws, and reads own members only', () => {
    expect(fieldsOf(Object.create(newer))).toContain('/name');
    const wild = fc.record(
      Object.fromEntries(Object.keys({ ...newer, ...older }).map((key) => [key, fc.jsonValue()])),
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), wild), (raw) => typeof normaliseCard(raw, { url }).ok === 'boolean'),
    );
    const near = fc
      .tuple(fc.constantFrom(...Object.keys(newer)), fc.jsonValue())
      .map(([key, value]) => ({ ...newer, [key]: value }));
    fc.assert(fc.property(near, (raw) => typeof normaliseCard(raw, { url }).ok === 'boolean'));
  });
});

describe('contentHash and diffCards', () => {
  it('compare the content of cards and, when asked for, their signers, but not the bytes of signatures', () => {
    const { name, ...rest } = newer;
    expect(contentHash({ ...rest, name })).toBe(contentHash(newer));
    expect(contentHash({ ...newer, signatures: [{ protected: 'a', signature: 'b' }] })).toBe(contentHash(newer));
    expect(contentHash(newer, ['key-1'])).not.toBe(contentHash(newer));
    expect(contentHash(newer, ['key-1'])).not.toBe(contentHash(newer, ['key-2']));
    expect(contentHash({ ...newer, version: '2' })).not.toBe(contentHash(newer));
    expect(contentHash(newer)).toMatch(/^[0-9a-f]{64}$/);
  });

  it('list what was added, removed and changed, in one order', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, name: id }));
    const before = { name: 'x', skills: [a, b], tags: ['1', '2'], 'a/b~c': 1 };
    const after = { version: '2', name: 'y', skills: [{ ...b, name: 'B' }, c], tags: ['1'], 'a/b~c': 2 };
    expect(diffCards(before, after)).toEqual([
      { path: '/a~1b~0c', kind: 'changed', before: 1, after: 2 },
      { path: '/name', kind: 'changed', before: 'x', after: 'y' },
      { path: '/skills/0', kind: 'removed', before: a },
      { path: '/skills/0/name', kind: 'changed', before: 'b', after: 'B' },
      { path: '/skills/1', kind: 'added', after: c },
      { path: '/tags/1', kind: 'removed', before: '2' },
      { path: '/version', kind: 'added', after: '2' },
    ]);
    expect(diffCards({ skills: [a, b] }, { skills: [b, a] })).toEqual([
      { path: '/skills', kind: 'changed', before: ['a', 'b'], after: ['b', 'a'] },
    ]);
  });

  it('find no change exactly for equal cards, and stop at 200', () => {
    const many = (value: number) => Object.fromEntries(Array.from({ length: 300 }, (_, key) => [`k${key}`, value]));
    expect(diffCards(many(1), many(2))).toHaveLength(200);
    fc.assert(
      fc.property(fc.object(), fc.object(), (before, after) => {
        const [left, right] = [JSON.parse(JSON.stringify(before)), JSON.parse(JSON.stringify(after))] as [
          object,
          object,
        ];
        expect(diffCards(left, left)).toEqual([]);
        const sameHash = contentHash({ left, signatures: 1 }) === contentHash({ left: right });
        expect(diffCards({ left }, { left: right }).length === 0).toBe(sameHash);
      }),
    );
  });
});
