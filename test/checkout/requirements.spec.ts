import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { requirements, systems } from '../requirements.js';
import { citationsOf, idsIn } from '../support/checks/citations.js';

const root = join(__dirname, '..', '..');
const specs = ['src', 'test'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.spec.ts'))
    .map((file) => join(folder, file)),
);
const own = join('test', 'checkout', 'requirements.spec.ts');

/** Requirement id to the spec files that cite it. */
const cited = new Map<string, string[]>();
for (const file of specs.filter((each) => each !== own)) {
  for (const id of citationsOf(readFileSync(join(root, file), 'utf8'))) {
    cited.set(id, [...(cited.get(id) ?? []), file]);
  }
}

describe('the requirements', () => {
  it.each([
    ['RE', 89],
    ['AN', 104],
    ['AE', 78],
    ['RY', 47],
    ['RI', 52],
  ] as const)('of %s are complete: 1 to %i', (system, count) => {
    const ids = Array.from({ length: count }, (_, index) => `${system}-${String(index + 1).padStart(2, '0')}`);
    expect(Object.keys(systems[system])).toEqual(ids);
  });

  it('are each listed once, so that no status hides another', () => {
    const all = Object.values(systems).flatMap((rows) => Object.keys(rows));
    expect(requirements.size).toBe(all.length);
  });

  it('have a summary of at most twelve words, and a reason when they are not implemented', () => {
    const wordy = [...requirements].filter(([, { behaviour }]) => behaviour.split(' ').length > 12);
    expect(wordy).toEqual([]);
    const silent = [...requirements].filter(([, row]) => row.status === 'left-out' && row.why === '');
    expect(silent).toEqual([]);
  });

  it('that are done are cited by a test', () => {
    const uncited = [...requirements].filter(([id, { status }]) => status === 'done' && !cited.has(id));
    expect(uncited.map(([id]) => id)).toEqual([]);
  });

  it('that are cited exist, and are implemented', () => {
    const wrong = [...cited].filter(([id]) => (requirements.get(id)?.status ?? 'left-out') === 'left-out');
    expect(wrong).toEqual([]);
  });
});

describe('a citation', () => {
  const one = (text: string) => citationsOf(text);

  it.each([
    ['a title', `it('RE-21 lossless', () => {});`],
    ['the title of a group', `describe('RE-21', () => {});`],
    ['a title with values', `it.each([1])('RE-21: %i', () => {});`],
    ['a row of a table', `const rows = [['RE-21 an object', {}]]; it.each(rows)('%s', () => {});`],
    ['a template', 'it(`RE-21 ${what}`, () => {});'],
    ['the end of a template', 'it(`${what} (RE-21)`, () => {});'],
  ])('is found in %s', (_where, text) => expect(one(text)).toEqual(['RE-21']));

  it.each([
    ['a comment', `// RE-21\nit('is lossless', () => {}); /* RE-21 */`],
    ['a skipped test', `it.skip('RE-21', () => {}); xit('RE-21', () => {}); it.todo('RE-21');`],
    ['a skipped group', `describe.skip('all', () => { it('RE-21', () => {}); });`],
    ['a skipped table', `it.skip.each([['RE-21']])('%s', () => {});`],
    ['another id that contains one', `it('CORE-21 is not ours, nor RE-2', () => {});`],
  ])('is not found in %s', (_where, text) => expect(one(text)).toEqual([]));

  it('may be a range', () => {
    const six = ['RE-15', 'RE-16', 'RE-17', 'RE-18', 'RE-19', 'RE-20'];
    for (const text of ['RE-15…RE-20', 'RE-15 … 20', 'RE-15...RE-20']) expect(idsIn(text)).toEqual(six);
    expect(idsIn('AN-99…AN-101, RI-52')).toEqual(['AN-99', 'AN-100', 'AN-101', 'RI-52']);
  });
});
