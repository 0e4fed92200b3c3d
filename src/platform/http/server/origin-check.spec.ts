import { isAllowedOrigin } from './origin-check.js';

describe('abuse 40: origin and host of doors on loopback', () => {
  it.each([
    ['no origin, loopback host', { host: '127.0.0.1:3000' }, true],
    ['own origin', { host: 'localhost:3000', origin: 'http://localhost:3000' }, true],
    ['IPv6 loopback', { host: '[::1]:3000', origin: 'http://[::1]:3000' }, true],
    ['a foreign page', { host: '127.0.0.1:3000', origin: 'http://evil.example' }, false],
    ['a sandboxed page', { host: '127.0.0.1:3000', origin: 'null' }, false],
    ['a rebound name', { host: 'evil.example:3000' }, false],
    ['a rebound name with its page', { host: 'evil.example:3000', origin: 'http://evil.example:3000' }, false],
    ['no host at all', {}, false],
  ])('on loopback: %s', (_case, headers, allowed) => {
    expect(isAllowedOrigin(headers, { loopback: true })).toBe(allowed);
  });

  it.each([
    ['the public page', { host: 'rialto.example', origin: 'https://rialto.example' }, 'rialto.example', true],
    ['another page', { host: 'rialto.example', origin: 'https://evil.example' }, 'rialto.example', false],
    ['same origin without a public URL', { host: 'a.example:3000', origin: 'http://a.example:3000' }, undefined, true],
    ['another origin without a public URL', { host: 'a.example:3000', origin: 'http://b.example' }, undefined, false],
    ['no page', { host: '10.0.0.7:3000' }, 'rialto.example', true],
  ])('on a network address: %s', (_case, headers, publicHost, allowed) => {
    expect(isAllowedOrigin(headers, { loopback: false, publicHost })).toBe(allowed);
  });
});
