import { RialtoError } from '../../kernel/errors.js';
import { normaliseCard, type NormalisedCard } from '../../protocol/a2a/card/card.js';
import {
  bridgeEndpoint,
  chooseEndpoints,
  endpointsWithoutCard,
  isNotHere,
  isSameOrigin,
  speaksJsonRpc,
  withCustomaryPaths,
} from './endpoint-choice.js';

const url = 'https://agent.example';

function card(...supportedInterfaces: object[]): NormalisedCard {
  const result = normaliseCard({ name: 'A', supportedInterfaces, skills: [] }, { url });
  if (!result.ok) throw new Error(JSON.stringify(result.violations));
  return result.card;
}

const face = (protocolBinding: string, path = '', protocolVersion = '1.0') => ({
  url: `${url}${path}`,
  protocolBinding,
  protocolVersion,
});

describe('chooseEndpoints', () => {
  it('takes the supported interfaces in the order of the card, with version and tenant', () => {
    const both = card(face('x-custom'), face('HTTP+JSON', '/rest'), { ...face('JSONRPC', '/rpc', '0.3'), tenant: 't' });
    expect(chooseEndpoints(both)).toEqual([
      { url: `${url}/rest`, binding: 'HTTP+JSON', version: '1.0' },
      { url: `${url}/rpc`, binding: 'JSONRPC', version: '0.3', tenant: 't' },
    ]);
  });

  it('takes gRPC only when the card offers nothing else', () => {
    const grpc = { url: 'agent.example:443', protocolBinding: 'GRPC', protocolVersion: '1.0' };
    expect(chooseEndpoints(card(grpc, face('JSONRPC'))).map(({ binding }) => binding)).toEqual(['JSONRPC']);
    expect(chooseEndpoints(card(grpc)).map(({ binding }) => binding)).toEqual(['GRPC']);
  });
});

describe('bridgeEndpoint', () => {
  it('RE-15 posts to the JSON-RPC interface of the card, else to the registered URL', () => {
    expect(bridgeEndpoint(card(face('HTTP+JSON', '/rest'), face('JSONRPC', '/rpc')), url).url).toBe(`${url}/rpc`);
    expect(bridgeEndpoint(undefined, url)).toEqual({ url, binding: 'JSONRPC', version: '0.3' });
  });

  it('detects an agent that offers no JSON-RPC', () => {
    expect(speaksJsonRpc(card(face('HTTP+JSON')))).toBe(false);
    expect(speaksJsonRpc(undefined)).toBe(true);
  });
});

describe('withCustomaryPaths', () => {
  it('AN-29, AN-30 tries the URL of the card, then /_agent-native/a2a, then /a2a below the base', () => {
    const [first] = chooseEndpoints(card(face('JSONRPC', '/rpc')));
    const urls = withCustomaryPaths(first!, `${url}/team/`).map((endpoint) => endpoint.url);
    expect(urls).toEqual([`${url}/rpc`, `${url}/team/_agent-native/a2a`, `${url}/team/a2a`]);
  });

  it('AN-30 lists no URL twice and adds no path to a gRPC endpoint', () => {
    const at = (path: string, binding = 'JSONRPC') => ({ url: `${url}${path}`, binding, version: '0.3' as const });
    expect(withCustomaryPaths(at('/a2a'), url).map((endpoint) => endpoint.url)).toEqual([
      `${url}/a2a`,
      `${url}/_agent-native/a2a`,
    ]);
    expect(withCustomaryPaths({ ...at('', 'GRPC'), url: 'h:1' }, url)).toHaveLength(1);
  });

  it('AN-30 tries a bare host last and a URL with a path first when there is no card', () => {
    expect(endpointsWithoutCard(`${url}/`).map((endpoint) => endpoint.url)).toEqual([
      `${url}/_agent-native/a2a`,
      `${url}/a2a`,
      `${url}/`,
    ]);
    expect(endpointsWithoutCard(`${url}/agents/x`)[0]?.url).toBe(`${url}/agents/x`);
  });
});

describe('isNotHere', () => {
  const failed = (data?: Record<string, unknown>) => new RialtoError('remote_transport', { data });

  it('AN-30 is true only for 404 and 405', () => {
    expect([404, 405].map((httpStatus) => isNotHere(failed({ httpStatus })))).toEqual([true, true]);
    expect([400, 401, 410, 500, 503].some((httpStatus) => isNotHere(failed({ httpStatus })))).toBe(false);
    expect(isNotHere(failed())).toBe(false);
    expect(isNotHere(new Error('404'))).toBe(false);
  });

  it('is false for a JSON-RPC server that answers with 404', () => {
    expect(isNotHere(failed({ httpStatus: 404, remoteCode: -32602 }))).toBe(false);
  });
});

describe('isSameOrigin', () => {
  it('abuse 18: requires the same scheme, host and port', () => {
    expect(isSameOrigin(`${url}/a`, `${url}:443/b`)).toBe(true);
    const others = [
      'http://agent.example',
      `${url}:8443`,
      'https://agent.example.evil',
      'agent.example:443',
      'nonsense',
    ];
    expect(others.some((other) => isSameOrigin(url, other))).toBe(false);
    expect(isSameOrigin('agent.example:443', 'agent.example:443')).toBe(false);
  });
});
