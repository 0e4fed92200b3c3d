import { matches } from './name-pattern.js';

describe('the name of a tool', () => {
  it.each([
    ['files__read', 'files__read', true],
    ['files__read', 'files__reads', false],
    ['files__*', 'files__read', true],
    ['files__*', 'xfiles__read', false],
    ['*read*', 'files__read_all', true],
    ['a*b*c', 'a_b_b_c', true],
    ['a*b*c', 'a_c', false],
    ['ab*ba', 'aba', false],
    ['*', 'anything', true],
    ['files.read', 'files_read', false],
  ])('%s: %s is %s', (pattern, name, fits) => expect(matches(name, [pattern])).toBe(fits));
});
