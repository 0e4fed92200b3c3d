import { compilePolicies, compiling, overweight } from './policy-set.js';
import { scanPolicies } from './policy-source.js';
import { validatePolicyText } from './validate.js';

const forbid = (body: string, index = 0) => ({
  name: `p${index}`,
  text: `forbid(principal == User::"u${index}", action, resource) when { ${body} };`,
});
const list = (length: number) => `[${Array.from({ length }, (_, index) => index).join(',')}].contains(context.depth)`;
const like = (pattern: string) => `context.input.hasTag("x") && context.input.getTag("x") like "${pattern}"`;

describe('X2.3 the total weight of the policies of an org', () => {
  it('counts words, patterns that match at any place, and bytes', () => {
    const weightOf = (text: string) => {
      const scan = scanPolicies(text);
      return 'weight' in scan ? scan.weight : undefined;
    };
    expect(weightOf('permit(principal, action, resource); // why not')).toEqual({ bytes: 47, words: 9, patterns: 0 });
    expect(weightOf(forbid(like('reports/*')).text)?.patterns).toBe(0);
    expect(weightOf(forbid(like('*.example')).text)?.patterns).toBe(9);
    expect(weightOf(forbid(like('a\\*b')).text)?.patterns).toBe(0);
    expect(weightOf(forbid(`${like('*a*')} && ${like('a*b')}`).text)?.patterns).toBe(6);
  });

  it.each([
    ['words', (index: number) => forbid(list(2_000), index), 3, /12000 words/],
    ['patterns', (index: number) => forbid(like(`*${'a'.repeat(88)}b*`), index), 18, /1600 characters of `like`/],
    [
      'bytes',
      (index: number) => ({ ...forbid('true', index), text: `//${'x'.repeat(16_000)}\n` }),
      66,
      /1048576 bytes/,
    ],
  ])('%s: refuses a policy beyond the limit, and accepts a change that reduces the weight', (_, row, count, reason) => {
    const rows = Array.from({ length: count }, (__, index) => row(index));
    const heavy = compilePolicies(rows);
    const before = compilePolicies(rows.slice(1));
    expect(overweight(before)).toBeUndefined();
    expect(overweight(heavy, before)).toMatch(reason);
    expect(overweight(heavy, compilePolicies([...rows, row(count)]))).toBeUndefined();
  });

  it('accepts at most 4,100 words in one text', () => {
    expect(validatePolicyText('list', forbid(list(2_000)).text)).toEqual([]);
    expect(validatePolicyText('list', forbid(list(2_100)).text)).toEqual([
      expect.objectContaining({ description: 'more than 4100 words' }),
    ]);
  });

  it('compiles in pieces of one text each, and judges the whole set although the caches change in between', () => {
    const broken = { name: 'broken', text: 'forbid(principal is Usr, action, resource);' };
    const rows = [broken, ...Array.from({ length: 8 }, (_, index) => forbid(list(1_500 + index), index))];
    const work = compiling(rows);
    let pieces = 0;
    for (let piece = work.next(); ; piece = work.next(), pieces++) {
      if (piece.done) {
        expect(piece.value.broken).toEqual([expect.objectContaining({ policy: 'broken' })]);
        break;
      }
      // Once the rows are parsed, other sets compile in between: more of them than the caches hold.
      if (pieces < rows.length) continue;
      for (let other = 0; other < 10; other++)
        compilePolicies(Array.from({ length: 45 }, (_, index) => forbid('true', pieces * 1_000 + other * 50 + index)));
    }
    expect(pieces).toBeGreaterThanOrEqual(17);
  });
});
