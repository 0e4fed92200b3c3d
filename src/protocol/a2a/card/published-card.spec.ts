import { AgentCard } from '@a2a-js/sdk';
import { parseLegacyAgentCard } from '@a2a-js/sdk/compat/v0_3/client';
import { normaliseCard } from './card.js';
import {
  encodeCard,
  formOf,
  publishedCard,
  type CardFacts,
  type CardForm,
  type CardVariant,
  type PublishedSkill,
} from './published-card.js';

const url = 'https://gate.example/a2a/agents/kofi';
const skill = (id: string, more: Partial<PublishedSkill> = {}): PublishedSkill => ({
  id,
  name: id,
  description: `Does ${id}.`,
  tags: ['x'],
  ...more,
});

function facts(more: Partial<CardFacts> = {}): CardFacts {
  return {
    name: 'kofi',
    description: 'Answers.',
    version: '2.1.0',
    doors: [
      { binding: 'JSONRPC', url },
      { binding: 'HTTP+JSON', url },
      { binding: 'GRPC', url: 'gate.example:50051', tenant: 'kofi' },
    ],
    versions: ['1.0', '0.3'],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extensions: [{ uri: 'urn:rialto:identity:v1', params: { trustTier: 2, handle: 'kofi@default', verified: true } }],
      extendedAgentCard: true,
    },
    securitySchemes: { jwtBearer: { httpAuthSecurityScheme: { scheme: 'bearer', bearerFormat: 'JWT' } } },
    inputModes: ['text/plain'],
    outputModes: ['text/plain'],
    skills: [skill('chat')],
    ...more,
  };
}

const written = (form: CardForm, more: Partial<CardFacts> = {}, variant: CardVariant = 'public'): any =>
  encodeCard(publishedCard(facts(more), variant), form);
const official = (card: unknown) => AgentCard.toJSON(AgentCard.fromJSON(card));
const v1Members = [
  'name',
  'description',
  'supportedInterfaces',
  'version',
  'capabilities',
  'securitySchemes',
  'securityRequirements',
  'defaultInputModes',
  'defaultOutputModes',
  'skills',
].sort();

describe('the card of a published agent', () => {
  it('RI-10 lists its doors in order, those of 1.0 first, and only for the versions that the agent offers', () => {
    const interfacesOf = (versions: CardFacts['versions']) =>
      written('1.0', { versions }).supportedInterfaces.map(
        (entry: any) => `${entry.protocolBinding} ${entry.protocolVersion}`,
      );
    expect(interfacesOf(['1.0'])).toEqual(['JSONRPC 1.0', 'HTTP+JSON 1.0', 'GRPC 1.0']);
    expect(interfacesOf(['0.3', '1.0'])).toEqual([
      ...['JSONRPC 1.0', 'HTTP+JSON 1.0', 'GRPC 1.0'],
      ...['JSONRPC 0.3', 'HTTP+JSON 0.3', 'GRPC 0.3'],
    ]);
    expect(written('1.0').supportedInterfaces[2]).toEqual({
      url: 'gate.example:50051',
      protocolBinding: 'GRPC',
      protocolVersion: '1.0',
      tenant: 'kofi',
    });
  });

  it('is pure in 1.0: it has no member outside the schema and no undefined member', () => {
    const card = written('1.0');
    expect(Object.keys(card).sort()).toEqual(v1Members);
    expect(card.capabilities).toEqual(facts().capabilities);
    expect(card.securityRequirements).toEqual([{ schemes: { jwtBearer: { list: [] } } }]);
    expect(JSON.stringify(card)).not.toContain('null');
  });

  it('AN-03 has only the members of 0.3 in 0.3', () => {
    const card = written('0.3', { versions: ['0.3'] });
    expect(card).toEqual({
      protocolVersion: '0.3',
      name: 'kofi',
      description: 'Answers.',
      version: '2.1.0',
      url,
      preferredTransport: 'JSONRPC',
      additionalInterfaces: [
        { url, transport: 'JSONRPC' },
        { url, transport: 'HTTP+JSON' },
        { url: 'gate.example:50051', transport: 'GRPC' },
      ],
      capabilities: {
        streaming: true,
        pushNotifications: false,
        stateTransitionHistory: false,
        extensions: facts().capabilities.extensions,
      },
      securitySchemes: { jwtBearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      security: [{ jwtBearer: [] }],
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [skill('chat')],
      supportsAuthenticatedExtendedCard: true,
    });
  });

  it('has all members of both pure forms as a hybrid', () => {
    const card = written('hybrid');
    expect(card).toMatchObject(written('1.0'));
    expect(card).toMatchObject(written('0.3'));
  });

  it('is read alike by the reader of the gateway and by the official one, in every form', () => {
    for (const form of ['1.0', 'hybrid'] as const) {
      const read = normaliseCard(written(form), { url });
      if (!read.ok) throw new Error(JSON.stringify(read.violations));
      expect(read.card.interfaces.map(({ version }) => version)).toContain('1.0');
      expect(read.card.securitySchemes).toEqual(facts().securitySchemes);
      expect(official(written(form))).toEqual(official(written('1.0')));
      expect(official(written(form))).toMatchObject({
        supportedInterfaces: written('1.0').supportedInterfaces,
        securitySchemes: facts().securitySchemes,
        capabilities: facts().capabilities,
      });
    }
    for (const form of ['0.3', 'hybrid'] as const) {
      const legacy = parseLegacyAgentCard(written(form));
      expect(
        legacy.supportedInterfaces.filter((entry) => entry.protocolVersion.startsWith('0.3')).length,
      ).toBeGreaterThan(0);
      expect(legacy.capabilities).toMatchObject({ streaming: true, pushNotifications: false, extendedAgentCard: true });
      expect(legacy.securitySchemes.jwtBearer?.scheme).toMatchObject({ $case: 'httpAuthSecurityScheme' });
    }
  });

  it('omits security when there is none', () => {
    for (const form of ['1.0', '0.3', 'hybrid'] as const)
      for (const name of ['securitySchemes', 'securityRequirements', 'security'])
        expect(written(form, { securitySchemes: {} })).not.toHaveProperty(name);
  });

  it('AN-05 AN-06 AN-07 shows only public skills to everyone, all to verified callers, and never the flags', () => {
    const skills = [
      skill('chat'),
      skill('mcp__user_1f3a_mail'),
      skill('mcp__org_42_crm'),
      skill('mcp__stdio_search'),
      skill('mcp__users_guide'),
      skill('template'),
      skill('hidden', { public: false }),
      skill('private', { requiresAuth: true }),
      skill('delete', { isConsequential: true }),
      skill('open', { public: true, requiresAuth: false, isConsequential: false }),
    ];
    for (const form of ['1.0', '0.3', 'hybrid'] as const) {
      const ids = (variant: CardVariant) => written(form, { skills }, variant).skills.map(({ id }: any) => id);
      expect(ids('public')).toEqual(['chat', 'mcp__stdio_search', 'mcp__users_guide', 'template', 'open']);
      expect(ids('extended')).toEqual(skills.map(({ id }) => id));
      expect(JSON.stringify(written(form, { skills }, 'extended'))).not.toMatch(
        /"public"|requiresAuth|isConsequential/,
      );
    }
  });
});

describe('the form of a card', () => {
  it.each([
    [['1.0'], undefined, '1.0'],
    [['1.0'], '0.3', '1.0'],
    [['0.3'], undefined, '0.3'],
    [['0.3'], '1.0', '0.3'],
    [['1.0', '0.3'], undefined, 'hybrid'],
    [['1.0', '0.3'], '', 'hybrid'],
    [['1.0', '0.3'], '0.3', 'hybrid'],
    [['1.0', '0.3'], '1.0', '1.0'],
    [['0.3', '1.0'], '1.0.1', '1.0'],
    [['1.0', '0.3'], '7.0', 'hybrid'],
  ] as const)('of an agent of %j, asked for by %p, is %s', (offered, asked, form) => {
    expect(formOf(offered, asked)).toBe(form);
  });
});
