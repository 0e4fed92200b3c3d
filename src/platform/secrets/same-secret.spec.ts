import { isSameSecret } from './same-secret.js';

it.each([
  ['the same', 'secret', 'secret', true],
  ['another one', 'secreT', 'secret', false],
  ['a longer one', 'secrets', 'secret', false],
  ['none', undefined, 'secret', false],
])('a secret is compared with %s', (_which, given, expected, isSame) => {
  expect(isSameSecret(given, expected)).toBe(isSame);
});
