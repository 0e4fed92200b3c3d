import type { Shape } from './shape.js';

const url = 'https://agent.example/a2a';
const skills = [{ id: 's', name: 'S', description: 'd', tags: ['t'] }];
const older = {
  name: 'A',
  description: 'd',
  version: '1',
  capabilities: {},
  skills,
  defaultInputModes: [],
  defaultOutputModes: [],
};
const newer = { ...older, supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] };
const at = (binding: string, version: string, where = url) => ({ interfaces: [{ url: where, binding, version }] });
const withFaces = (...supportedInterfaces: object[]) => ({ ...older, supportedInterfaces });
const face = (more: object) => withFaces({ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', ...more });

export const cards: readonly Shape[] = [
  ['A2A 1.0 section 4.4.1', newer, at('JSONRPC', '1.0')],
  ['A2A 1.0 section 4.4.6, tenant', face({ tenant: 't' }), { interfaces: [{ tenant: 't' }] }],
  ['A2A 1.0 section 4.4.6, empty tenant of ProtoJSON', face({ tenant: '' }), at('JSONRPC', '1.0')],
  ['A2A 1.0 section 3.6.1, patch digits', face({ protocolVersion: '1.0.1' }), at('JSONRPC', '1.0')],
  ['a2a-js 1.0, version absent', face({ protocolVersion: undefined }), at('JSONRPC', '1.0')],
  ['A2A 1.0, REST', face({ protocolBinding: 'HTTP+JSON' }), at('HTTP+JSON', '1.0')],
  [
    'A2A 1.0.1 section 5.8, gRPC host:port',
    face({ protocolBinding: 'GRPC', url: 'a.example:443' }),
    at('GRPC', '1.0', 'a.example:443'),
  ],
  [
    'a2a-go 1.0, gRPC with IPv6',
    face({ protocolBinding: 'GRPC', url: '[::1]:50051' }),
    at('GRPC', '1.0', '[::1]:50051'),
  ],
  ['a2a-dotnet, lower case binding', face({ protocolBinding: 'jsonrpc' }), at('JSONRPC', '1.0')],
  ['hand-written, JSON-RPC', face({ protocolBinding: 'JSON-RPC' }), at('JSONRPC', '1.0')],
  ['hand-written, REST', face({ protocolBinding: 'REST' }), at('HTTP+JSON', '1.0')],
  ['hand-written, v1.0', face({ protocolVersion: 'v1.0' }), at('JSONRPC', '1.0')],
  [
    'A2A 1.0 over snake_case (Python dicts)',
    { ...older, supported_interfaces: [{ url, protocol_binding: 'JSONRPC', protocol_version: '1.0' }] },
    at('JSONRPC', '1.0'),
  ],
  [
    'A2A 1.0, a binding of its own beside one that is known',
    withFaces({ url, protocolBinding: 'https://x/y' }, { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }),
    { interfaces: [{}, { binding: 'JSONRPC' }] },
  ],
  ['A2A 1.0 interface of 0.3', face({ protocolVersion: '0.3' }), at('JSONRPC', '0.3')],
  [
    'A2A 1.0, capabilities',
    { ...newer, capabilities: { streaming: true, extendedAgentCard: true } },
    { capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true } },
  ],
  ['ProtoJSON 1.0, skills left out when empty', { ...newer, skills: undefined }, { skills: [] }],
  ['A2A 0.3 section 5.5', { ...older, url, protocolVersion: '0.3.0' }, at('JSONRPC', '0.3')],
  [
    'A2A 0.3 section 5.6, preferredTransport',
    { ...older, url, protocolVersion: '0.3.0', preferredTransport: 'HTTP+JSON' },
    at('HTTP+JSON', '0.3'),
  ],
  [
    'A2A 0.3 section 5.6, additionalInterfaces',
    { ...older, url, additionalInterfaces: [{ url: 'https://agent.example/rest', transport: 'HTTP+JSON' }] },
    { interfaces: [{ binding: 'JSONRPC' }, { binding: 'HTTP+JSON' }] },
  ],
  [
    'A2A 0.3, the main interface named twice',
    { ...older, url, additionalInterfaces: [{ url, transport: 'JSONRPC' }] },
    at('JSONRPC', '0.3'),
  ],
  [
    'A2A 0.3, supportsAuthenticatedExtendedCard',
    { ...older, url, supportsAuthenticatedExtendedCard: true },
    { capabilities: { extendedAgentCard: true } },
  ],
  [
    'A2A 0.3 section 5.5.3, security schemes of OpenAPI',
    { ...older, url, securitySchemes: { k: { type: 'apiKey', in: 'header', name: 'X-Key' } } },
    { securitySchemes: { k: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } } },
  ],
  [
    'A2A 1.0 section 4.5, security schemes',
    { ...newer, securitySchemes: { k: { httpAuthSecurityScheme: { scheme: 'Bearer' } } } },
    { securitySchemes: { k: { httpAuthSecurityScheme: { scheme: 'Bearer' } } } },
  ],
  ['A2A 0.2.5', { ...older, url, protocolVersion: '0.2.5' }, at('JSONRPC', '0.3')],
  [
    'A2A 0.1, no protocolVersion',
    { name: 'A', url, version: '1', capabilities: { streaming: true }, skills },
    at('JSONRPC', '0.3'),
  ],
  [
    'A2A 0.1, null members of pydantic',
    { ...older, url, provider: null, documentationUrl: null, security: null },
    at('JSONRPC', '0.3'),
  ],
  [
    'a2a-python 0.2, url with a trailing slash',
    { ...older, url: 'https://agent.example/' },
    at('JSONRPC', '0.3', 'https://agent.example/'),
  ],
  ['Google ADK, relative url', { ...older, url: '/a2a' }, at('JSONRPC', '0.3', url)],
  [
    'hybrid of 1.0 and 0.3 (a2a-js 1.0 compat)',
    { ...newer, url, protocolVersion: '0.3.0' },
    { protocolVersions: ['1.0', '0.3'] },
  ],
  [
    'a skill with its own inputSchema',
    { ...older, url, skills: [{ id: 's', inputSchema: { type: 'object' } }] },
    { skills: [{ id: 's', name: 's', inputSchema: { type: 'object' } }] },
  ],
  [
    'A2A 0.1 skill without description and tags',
    { ...older, url, skills: [{ id: 's', name: 'S' }] },
    { skills: [{ description: '', tags: [] }] },
  ],
  [
    'provider of A2A 0.3',
    { ...older, url, provider: { organization: 'O', url: 'https://o.example' } },
    { provider: { organization: 'O' } },
  ],
  ['no object', [], /the card must be a JSON object/],
  ['no name', { ...newer, name: '' }, /\/name: /],
  ['no skills on a card of 0.3', { ...older, url, skills: undefined }, /\/skills: /],
  ['skills as an object', { ...newer, skills: { s: {} } }, /\/skills: /],
  ['a skill without id', { ...newer, skills: [{ name: 'S' }] }, /\/skills\/0\/id: /],
  ['a skill id given twice', { ...newer, skills: [...skills, ...skills] }, /\/skills\/1\/id: /],
  [
    'an inputSchema that is a text',
    { ...newer, skills: [{ id: 's', inputSchema: '{}' }] },
    /\/skills\/0\/inputSchema: /,
  ],
  ['no address', older, /\/url: /],
  ['an address without a scheme', { ...older, url: 'localhost:9000' }, /\/url: .*has no scheme/],
  ['an interface of version 2', face({ protocolVersion: '2.0' }), /\/supportedInterfaces: /],
  ['WebSocket alone', face({ protocolBinding: 'WEBSOCKET' }), /\/supportedInterfaces: /],
];
