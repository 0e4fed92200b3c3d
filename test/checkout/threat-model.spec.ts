import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const docs = join(__dirname, '..', '..', 'docs');
const text = readFileSync(join(docs, 'threat-model.md'), 'utf8');
const rows = [...text.matchAll(/^\| (\d+) \| (.+) \| (.+) \| (.+) \|$/gm)].map(([, number, attack, stops, tests]) => ({
  number: Number(number),
  attack: attack!,
  stops: stops!,
  tests: [...tests!.matchAll(/\]\(([^)]+)\)/g)].map(([, path]) => path!),
}));

describe('docs/threat-model.md', () => {
  it('numbers its attacks without a gap', () => {
    expect(rows.map(({ number }) => number)).toEqual(rows.map((_, index) => index + 1));
    expect(rows.length).toBeGreaterThanOrEqual(52);
  });

  it.each(rows)('$number, $attack: has tests that exist', ({ tests }) => {
    expect(tests.length).toBeGreaterThan(0);
    for (const path of tests) {
      const file = join(docs, path);
      expect([path, existsSync(file)]).toEqual([path, true]);
      expect(readFileSync(file, 'utf8')).toMatch(/\b(?:it|test)(?:\.each)?\b/);
    }
  });

  it('has a row for each number that a test cites', () => {
    const cited = /\babuse (?:case )?(\d+)/g;
    const files = new Set(rows.flatMap(({ tests }) => tests));
    for (const path of files)
      for (const [, number] of readFileSync(join(docs, path), 'utf8').matchAll(cited))
        expect(Number(number)).toBeLessThanOrEqual(rows.length);
  });
});
