import type { Dialect, Wire } from './stub-wire.js';

/** `old` is a 0.2 peer: `agent.json`, no protocolVersion, no transports. */
export type CardKind = 'v1' | 'v03' | 'hybrid' | 'old';

export interface StubSkill {
  id: string;
  name?: string;
  description?: string;
  tags?: string[];
  inputSchema?: Wire;
}

export interface CardOptions {
  card?: CardKind;
  name?: string;
  description?: string;
  version?: string;
  skills?: StubSkill[];
  capabilities?: Wire;
  securitySchemes?: Wire;
  /** `securityRequirements` of v1.0, `security` of v0.3. */
  security?: Wire[];
  /** RE-61: written as `metadata.costPerTask` of the card. */
  costPerTask?: number;
  /** The dialects that the agent supports and lists, in order of preference. */
  speaks?: Dialect[];
  /** A declared URL that differs from the URL of the agent. Credentials must not be sent there. */
  endpoint?: string;
}

const spokenBy: Record<CardKind, Dialect[]> = {
  v1: ['v1-jsonrpc', 'v1-rest'],
  v03: ['v03-jsonrpc', 'v03-rest'],
  hybrid: ['v1-jsonrpc', 'v1-rest', 'v03-jsonrpc', 'v03-rest'],
  old: ['v03-jsonrpc'],
};

const bindings: Record<Dialect, { protocolBinding: string; protocolVersion: string }> = {
  'v1-jsonrpc': { protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  'v1-rest': { protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  'v03-jsonrpc': { protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  'v03-rest': { protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
};

export function dialectsOf(options: CardOptions): Dialect[] {
  return options.speaks ?? spokenBy[options.card ?? 'v1'];
}

export function wellKnownPath(kind: CardKind): string {
  return kind === 'old' ? '/.well-known/agent.json' : '/.well-known/agent-card.json';
}

function commonFields(options: CardOptions): Wire {
  const skills = options.skills ?? [{ id: 'work' }];
  return {
    name: options.name ?? 'Stub Agent',
    description: options.description ?? 'A scriptable test agent.',
    version: options.version ?? '1.0.0',
    capabilities: options.capabilities ?? { streaming: true, pushNotifications: false },
    defaultInputModes: ['application/json', 'text/plain'],
    defaultOutputModes: ['application/json', 'text/plain'],
    skills: skills.map((skill) => ({
      name: skill.id,
      description: `Does ${skill.id}.`,
      tags: [skill.id],
      ...skill,
    })),
    ...(options.securitySchemes && { securitySchemes: options.securitySchemes }),
    ...(options.costPerTask !== undefined && { metadata: { costPerTask: options.costPerTask } }),
  };
}

function v1Fields(options: CardOptions, rpcUrl: string, restUrl: string): Wire {
  return {
    supportedInterfaces: dialectsOf(options).map((dialect) => ({
      url: dialect.endsWith('rest') ? restUrl : rpcUrl,
      ...bindings[dialect],
    })),
    ...(options.security && { securityRequirements: options.security }),
  };
}

function v03Fields(options: CardOptions, rpcUrl: string, restUrl: string): Wire {
  const [first = 'v03-jsonrpc', ...others] = dialectsOf(options).filter((dialect) => dialect.startsWith('v03'));
  const urlOf = (dialect: Dialect) => (dialect === 'v03-rest' ? restUrl : rpcUrl);
  return {
    protocolVersion: '0.3.0',
    url: urlOf(first),
    preferredTransport: bindings[first].protocolBinding,
    additionalInterfaces: others.map((dialect) => ({
      url: urlOf(dialect),
      transport: bindings[dialect].protocolBinding,
    })),
    ...(options.security && { security: options.security }),
  };
}

/** Builds the card of an agent at `origin`, as plain JSON. JSON-RPC is at `rpcPath`, REST at the origin. */
export function buildCard(options: CardOptions, origin: string, rpcPath: string): Wire {
  const kind = options.card ?? 'v1';
  const base = options.endpoint ?? origin;
  const rpcUrl = rpcPath === '/' ? base : `${base}${rpcPath}`;
  return {
    ...commonFields(options),
    ...((kind === 'v1' || kind === 'hybrid') && v1Fields(options, rpcUrl, base)),
    ...((kind === 'v03' || kind === 'hybrid') && v03Fields(options, rpcUrl, base)),
    ...(kind === 'old' && { url: rpcUrl }),
  };
}
