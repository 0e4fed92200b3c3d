import { PublicUrl } from './public-url.js';

const settings = { RIALTO_PUBLIC_URL: undefined, HOST: '127.0.0.1', PORT: 0, GRPC_PORT: undefined };

describe('the public URL', () => {
  it('is RIALTO_PUBLIC_URL without a trailing slash, independent of the listening address', () => {
    const url = new PublicUrl({
      ...settings,
      RIALTO_PUBLIC_URL: 'https://gate.example:8443/agents/',
      GRPC_PORT: 50051,
    });
    url.listensOn(4000);
    expect(url.base).toBe('https://gate.example:8443/agents');
    expect(url.hosts).toEqual(['gate.example', 'gate.example:8443']);
    expect(url.grpc).toBe('gate.example:50051');
  });

  it.each([
    ['127.0.0.1', 'http://127.0.0.1:4000'],
    ['localhost', 'http://localhost:4000'],
    ['::1', 'http://[::1]:4000'],
    ['0.0.0.0', 'http://127.0.0.1:4000'],
    ['::', 'http://[::1]:4000'],
  ])('else it is the listening address: %s, %s', (HOST, base) => {
    const url = new PublicUrl({ ...settings, HOST });
    url.listensOn(4000);
    expect(url.base).toBe(base);
  });

  it('has no gRPC address without a port, and otherwise the port that gRPC listens on', () => {
    const url = new PublicUrl({ ...settings, GRPC_PORT: 0 });
    url.listensForGrpcOn(50_123);
    expect([new PublicUrl(settings).grpc, url.grpc]).toEqual([undefined, '127.0.0.1:50123']);
  });
});
