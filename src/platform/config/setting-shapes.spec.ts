import { z } from 'zod';
import { readEnvironment } from './env.schema.js';
import { readableProblem } from './setting-shapes.js';

describe('readableProblem', () => {
  const problemOf = (schema: z.ZodType, value: unknown) =>
    readableProblem(schema.safeParse(value).error!.issues[0] as z.core.$ZodIssue);

  it('has the unit of a limit', () => {
    expect(problemOf(z.string().min(12), 'x')).toBe('must have at least 12 characters');
    expect(problemOf(z.string().max(2), 'xyz')).toBe('must have at most 2 characters');
    expect(problemOf(z.number().min(12), 1)).toBe('must be at least 12');
    expect(problemOf(z.number().max(2), 3)).toBe('must be at most 2');
  });
});

describe('RIALTO_JWKS', () => {
  const problemsOf = (text: string) => readEnvironment({ RIALTO_JWKS: text }).problems;

  it('has each issuer once, because the issuer of a token finds its org', () => {
    const acme = 'acme=https://idp.example|https://idp.example/jwks';
    expect(problemsOf(`${acme},globex=https://other.example|https://idp.example/jwks`)).toEqual([]);
    expect(problemsOf(`${acme},globex=https://idp.example|https://idp.example/jwks2`)).toEqual([
      'RIALTO_JWKS names the issuer https://idp.example more than once; an issuer belongs to one org',
    ]);
    expect(problemsOf('acme,globex')).toEqual([
      'RIALTO_JWKS must be a list of `org=issuer|jwks-url`, separated by commas',
    ]);
  });
});
