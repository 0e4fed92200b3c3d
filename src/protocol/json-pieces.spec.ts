import { atOnce, weightOf } from '../kernel/json.js';
import { parsing, writing } from './json-pieces.js';

/** Counts how often the items and the names of a container are read. */
function counted<Container extends object>(container: Container) {
  const reads = { items: 0, names: 0 };
  const value = new Proxy(container, {
    get: (target, name, receiver) => {
      if (typeof name === 'string' && Object.hasOwn(target, name) && name !== 'length') reads.items++;
      return Reflect.get(target, name, receiver) as unknown;
    },
    ownKeys: (target) => {
      reads.names++;
      return Reflect.ownKeys(target);
    },
  });
  return { value, reads };
}

function nested(levels: number, inner: unknown): unknown {
  let value = inner;
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
}

/** Runs work to its end, and counts its pauses. */
function run<Result>(work: Generator<void, Result>) {
  for (let pauses = 0; ; pauses++) {
    const { done, value } = work.next();
    if (done) return { pauses, value };
  }
}

const members = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, at]));

describe('writing', () => {
  it.each([
    ['a list', Array<number>(50_000).fill(1)],
    ['an object', members(50_000)],
  ])('reads the values of %s as often at any depth', (_, container) => {
    for (const levels of [1, 200]) {
      const { value, reads } = counted(container);
      const { value: text, pauses } = run(writing(nested(levels, value)));
      expect(text).toBe(JSON.stringify(nested(levels, container)));
      // Once to weigh it, and at most twice to write it.
      expect(reads.items).toBeLessThanOrEqual(3 * 50_000);
      expect(reads.names).toBeLessThanOrEqual(2);
      expect(pauses).toBeGreaterThan(20);
    }
  });

  it('pauses also within many small values', () => {
    const value = { toJSON: 'a name as any other', list: Array.from({ length: 100_000 }, () => ({ a: 1 })) };
    const { value: text, pauses } = run(writing(value));
    expect(text).toBe(JSON.stringify(value));
    expect(pauses).toBeGreaterThan(50);
  });

  it('leaves the form of a value that has its own to it', () => {
    const list = Array<number>(50_000).fill(1);
    const value = [{ list, toJSON: () => 'short' }, new Date(0), list, { list, toJSON: undefined }];
    expect(run(writing(value)).value).toBe(JSON.stringify(value));
  });
});

describe('parsing', () => {
  const blanks = ' \n\t\r'.repeat(50_000);
  const long = `[${Array(40_000).fill('1').join()}]`;
  const forms = (gap: string) => [
    `${gap}[${gap}]${gap}`,
    `[${gap}1${gap},${gap}"a${gap.replace(/\s/g, ' ')}"${gap}]`,
    `{${gap}"a"${gap}:${gap}${long}${gap},${gap}"b\\""${gap}:${gap}{${gap}}${gap}}`,
    `[${gap}${long}${gap},${gap}${long}${gap}]${gap}`,
    ...[gap, `[1${gap}2]`, `[1,${gap}]`, `{"a"${gap}}`, `{"a":1}${gap}]`, `"a${gap}`],
  ];

  it.each([999, 1_000, 200_000])('reads %d blanks between tokens as JSON.parse does', (count) => {
    const outcome = (work: () => unknown): string => {
      try {
        return JSON.stringify(work());
      } catch (error) {
        return (error as Error).name;
      }
    };
    for (const text of forms(blanks.slice(0, count)))
      expect(outcome(() => atOnce(parsing(text)))).toBe(outcome(() => JSON.parse(text)));
  });

  it('gives no long blanks to JSON.parse', () => {
    const parse = jest.spyOn(JSON, 'parse');
    atOnce(parsing(`[${blanks}1${blanks}]`));
    const lengths = parse.mock.calls.map(([text]) => text.length);
    parse.mockRestore();
    expect(Math.max(...lengths)).toBeLessThan(10);
  });

  it.each([
    ['quotes', '\\"'],
    ['backslashes', '\\\\'],
  ])('pauses within a text of escaped %s', (_, escape) => {
    const text = `["${escape.repeat(500_000)}","${escape}"]`;
    const { value, pauses } = run(parsing(text));
    expect(JSON.stringify(value)).toBe(text);
    expect(pauses).toBeGreaterThan(10);
  });
});

describe('weightOf', () => {
  it('reads no more of a long list than the limit requires', () => {
    const { value, reads } = counted(Array<number>(100_000).fill(1));
    expect(weightOf([value, value], 1_000)).toBeGreaterThanOrEqual(1_000);
    expect(reads.items).toBeLessThanOrEqual(1_000);
  });

  it('reads no more of a long object than the limit requires', () => {
    const { value, reads } = counted(members(50_000));
    expect(weightOf(value, 1_000)).toBeGreaterThanOrEqual(1_000);
    expect(reads.items).toBeLessThanOrEqual(1_000);
  });
});
