import { clientAddress, parseTrustProxy } from './client-address.js';

const request = (peer: string, forwarded?: string) =>
  ({ headers: forwarded ? { 'x-forwarded-for': forwarded } : {}, socket: { remoteAddress: peer } }) as never;

describe('the address of a client', () => {
  it.each([
    [undefined, '10.0.0.1', '1.1.1.1', '10.0.0.1'],
    ['false', '10.0.0.1', '1.1.1.1', '10.0.0.1'],
    ['1', '10.0.0.1', '6.6.6.6, 1.1.1.1', '1.1.1.1'],
    ['2', '10.0.0.1', '6.6.6.6, 1.1.1.1', '6.6.6.6'],
    ['true', '10.0.0.1', '6.6.6.6, 1.1.1.1', '6.6.6.6'],
    ['true', '10.0.0.1', undefined, '10.0.0.1'],
    ['10.0.0.0/8', '10.0.0.1', '6.6.6.6, 1.1.1.1, 10.9.9.9', '1.1.1.1'],
    ['10.0.0.0/8', '::ffff:10.0.0.1', '1.1.1.1', '1.1.1.1'],
    ['10.0.0.0/8', '9.9.9.9', '1.1.1.1', '9.9.9.9'],
    ['true', '10.0.0.1', 'nonsense\u2028', 'unknown'],
  ])('with RIALTO_TRUST_PROXY=%s, peer %s, forwarded %s: %s', (trust, peer, forwarded, address) => {
    expect(clientAddress(request(peer, forwarded), parseTrustProxy(trust))).toBe(address);
  });

  it('refuses an invalid range, and names it', () => {
    expect(() => parseTrustProxy('10.0.0.0/8,proxy')).toThrow('proxy');
  });
});
