import { RE2JS } from 're2js';
import { isRefusedPattern } from './schema-engine.js';

function compiles(pattern: string): boolean {
  try {
    RE2JS.compile(RE2JS.translateRegExp(pattern));
    return true;
  } catch {
    return false;
  }
}

const pieces = [
  ...['a', '1', '-', '.', '^', '$', '|', '*', '+', '?', '{2}', '{1,3}', '{3,1}', '{', '}', '(', ')', '[', '[^', ']'],
  ...['(?:', '(?=', '(?!', '(?<=', '(?<!', '(?<n>', '(?P<n>', '(?i)', '[[:alpha:]]', '\\p{L}', '\\x41', '\\cA', '\n'],
  ...['\\', '\\d', '\\b', '\\(', '\\)', '\\[', '\\]', '\\1', '\\7', '\\12', '\\9', '\\k<n>', '\\Q', '\\E', '\\A'],
];

it('refuses no pattern that RE2 compiles', () => {
  let [seed, refusals] = [7, 0];
  const next = (below: number) => (seed = (seed * 48_271) % 0x7fffffff) % below;
  for (let index = 0; index < 20_000; index++) {
    const pattern = Array.from({ length: 1 + next(6) }, () => pieces[next(pieces.length)]!).join('');
    if (!isRefusedPattern(pattern)) continue;
    refusals++;
    expect([pattern, compiles(pattern)]).toEqual([pattern, false]);
  }
  expect(refusals).toBeGreaterThan(5_000);
});

it.each([
  '(?=a)b',
  'a(?!b)',
  '(?<=a)b',
  '(?<!a)b',
  '(a)\\1',
  '*a',
  'a|+',
  '(',
  ')',
  'a)(',
  '[a',
  'a\\',
  'x'.repeat(1_001),
])('refuses %j without compiling it', (pattern) => {
  expect([isRefusedPattern(pattern), compiles(pattern) && pattern.length <= 1_000]).toEqual([true, false]);
});

it.each(['^[(?=]\\($', '[]a]+', '(a|b)?', '\\12', '\\Q(\\E', '^(a|b|c){1,20}x$', ''])(
  'does not refuse %j',
  (pattern) => {
    expect([isRefusedPattern(pattern), compiles(pattern)]).toEqual([false, true]);
  },
);
