import { hasConfiguredA2ASecret, securitySchemesOf, shouldAdvertiseJwtA2AAuth } from './card-security.js';

const settings = { A2A_SECRET: undefined, production: false, RIALTO_DEV_ANONYMOUS: false, legacyBearer: undefined };
const secret = { A2A_SECRET: 'x'.repeat(32) };

describe('the security schemes of a card', () => {
  it.each([
    ['development without a secret', {}, false, ['bearer']],
    ['a secret', secret, false, ['jwtBearer']],
    ['production', { production: true }, false, ['jwtBearer']],
    ['a static bearer', { legacyBearer: 'k' }, false, ['apiKey']],
    ['a static bearer of the agent', {}, true, ['apiKey']],
    ['a secret and a static bearer', { ...secret, legacyBearer: 'k' }, false, ['jwtBearer', 'apiKey']],
    ['production with a static bearer of the agent', { production: true }, true, ['jwtBearer', 'apiKey']],
    ['callers that need no token', { ...secret, RIALTO_DEV_ANONYMOUS: true }, true, []],
  ])('AN-47 %s: %j', (_what, given, ofAgent, expected) => {
    expect(Object.keys(securitySchemesOf({ ...settings, ...given }, ofAgent))).toEqual(expected);
  });

  it('AN-47 advertises jwtBearer only when a secret is set or in production', () => {
    for (const A2A_SECRET of [undefined, secret.A2A_SECRET])
      for (const production of [false, true])
        expect(shouldAdvertiseJwtA2AAuth({ A2A_SECRET, production })).toBe(A2A_SECRET !== undefined || production);
    expect([hasConfiguredA2ASecret(settings), hasConfiguredA2ASecret(secret)]).toEqual([false, true]);
  });

  it('states the bearer format only for JWTs', () => {
    expect(securitySchemesOf({ ...settings, ...secret, legacyBearer: 'k' }, false)).toEqual({
      jwtBearer: { httpAuthSecurityScheme: { scheme: 'bearer', bearerFormat: 'JWT' } },
      apiKey: { httpAuthSecurityScheme: { scheme: 'bearer' } },
    });
  });
});
