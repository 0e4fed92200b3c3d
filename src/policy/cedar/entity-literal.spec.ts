import fc from 'fast-check';
import { policyToJson } from '@cedar-policy/cedar-wasm/nodejs';
import { cedarString, parseEntityLiteral } from './entity-literal.js';

it.each([
  ['Skill::"vercel_ops.deploy"', { type: 'Skill', id: 'vercel_ops.deploy' }],
  [' User :: "a b" ', { type: 'User', id: 'a b' }],
  ['User::"say \\"hi\\" \\\\ \\n \\u{1F642} \\x41 \\0"', { type: 'User', id: 'say "hi" \\ \n 🙂 A \0' }],
  ['Action::"a2a_invoke"', { type: 'Action', id: 'a2a_invoke' }],
])('%s', (text, value) => {
  expect(parseEntityLiteral(text)).toEqual({ ok: true, value });
});

it.each([
  ['User::bob', /expected/],
  ['User::"a" || true', /expected/],
  ['User::"a"b"', /expected/],
  ['User::"a\\"', /expected/],
  ['Usr::"a"', /unknown entity type Usr/],
  ['Rialto::User::"a"', /unknown entity type/],
  ['User::"\\q"', /escape/],
  ['User::"\\u{110000}"', /escape/],
  ['User::"\\u{d800}"', /well-formed/],
  ['Action::"fly"', /unknown action "fly"/],
])('refuses %s', (text, description) => {
  expect(parseEntityLiteral(text, 'principal')).toEqual({
    ok: false,
    violations: [{ field: 'principal', description: expect.stringMatching(description) }],
  });
});

it('parses the literals that it writes, with the same result as Cedar', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (id) => {
      const literal = `User::${cedarString(id)}`;
      expect(parseEntityLiteral(literal)).toEqual({ ok: true, value: { type: 'User', id } });
      const answer = policyToJson(`permit(principal == ${literal}, action, resource);`);
      expect(answer).toMatchObject({ json: { principal: { entity: { type: 'User', id } } } });
    }),
    { examples: [['\u2028\u202e\u0000"\\*'], ['\ufeff']] },
  );
});
