import { atOnce } from '../kernel/json.js';
import { asDoubles, parseExact, restored, restoring, shielded, shielding } from './exact-integers.js';
import { parseJson, parsingJson } from './json-text.js';

describe('exact integers', () => {
  const texts = [
    '1915883588174806058',
    '12345678901234567890',
    '-12345678901234567890',
    '9007199254740993',
    '1152921504606846976',
    '100000000000000000000000',
    '[9007199254740993,{"a":-9007199254740993,"b":[1,"9007199254740993"]}]',
    '{"text":"\\"9007199254740993","n":1234567890123456789}',
    `{"n":${'7'.repeat(308)}}`,
  ];

  it.each(texts)('keep their digits: %s (C27, E6)', (text) => {
    expect(JSON.stringify(parseExact(text))).toBe(text);
    const parsed = parseJson(text);
    expect(parsed.ok && JSON.stringify(parsed.value)).toBe(text);
    expect(JSON.stringify(restored(JSON.parse(shielded(text))))).toBe(text);
  });

  it('are numbers when a double has all their digits', () => {
    for (const text of [
      '9007199254740991',
      '9007199254740992',
      '1000000000000000000',
      '0',
      '-1',
      '1234567890123456800',
    ]) {
      expect(shielded(text)).toBe(text);
      expect(parseExact(text)).toBe(Number(text));
    }
  });

  it('does not change other numbers and texts', () => {
    for (const text of [
      '1.2345678901234567890',
      '12345678901234567890.5',
      '12345678901234567890e3',
      '"12345678901234567890"',
    ])
      expect(shielded(text)).toBe(text);
  });

  it.each([
    '01234567890123456789',
    '--12345678901234567890',
    '+12345678901234567890',
    '12345678901234567890 12345678901234567890',
    '{12345678901234567890:1}',
    '{12345678901234567890 \n\t\r :1}',
    '[12345678901234567890',
    '12345678901234567890a',
    '1.12345678901234567890.1',
    '"12345678901234567890',
  ])('keeps invalid JSON invalid: %s', (text) => {
    expect(() => parseExact(text)).toThrow(SyntaxError);
    expect(parseJson(text)).toEqual({ ok: false, reason: 'not JSON' });
  });

  it('refuses integers that are out of the range of doubles', () => {
    expect(parseJson('9'.repeat(400))).toEqual({ ok: false, reason: 'a number is out of range' });
  });

  it('drops __proto__ and sets no prototype', () => {
    const parsed = parseJson('{"__proto__":12345678901234567890,"a":12345678901234567890}');
    expect(parsed).toEqual({ ok: true, value: { a: 12345678901234567890n } });
    expect(Object.getPrototypeOf(parseExact('{"__proto__":12345678901234567890}'))).toBe(Object.prototype);
  });

  it('gives the nearest doubles to readers that know only doubles', () => {
    const value = { a: [12345678901234567890n, 1], b: { c: 'x' } };
    expect(asDoubles(value)).toEqual({ a: [Number('12345678901234567890'), 1], b: { c: 'x' } });
    expect(asDoubles(value).b).toBe(value.b);
    expect(value.a[0]).toBe(12345678901234567890n);
  });
});

describe('work on long texts', () => {
  /** Counts the pauses of work. */
  const pausesOf = (work: Generator<void, unknown>): number => {
    for (let pauses = 0; ; pauses++) if (work.next().done) return pauses;
  };

  it.each([
    ['no long integer', '123456789012345,'],
    ['integers in texts', '"1234567890123456",'],
    ['long integers', '12345678901234567890,'],
    ['one long number', '1'],
  ])('pauses after each 65,536 characters of a text with %s', (_, part) => {
    expect(pausesOf(shielding(`[${part.repeat(1_000_000 / part.length)}1]`))).toBeGreaterThanOrEqual(14);
  });

  it('finds an integer at each place around a pause', () => {
    for (let before = 65_500; before < 65_560; before++) {
      const text = `[${' '.repeat(before)}12345678901234567]`;
      expect(atOnce(shielding(text))).toMatch(/"integer-[^"]*:12345678901234567"\]$/);
    }
  });

  it('pauses while it restores many values', () => {
    expect(pausesOf(restoring({ list: Array(100_000).fill(1) }))).toBeGreaterThanOrEqual(9);
    expect(pausesOf(restoring(Array.from({ length: 50_000 }, () => ({ a: 1 }))))).toBeGreaterThanOrEqual(9);
  });

  it('pauses while it looks for numbers that are too large, and for names of prototypes', () => {
    const list = Array(100_000).fill('1').join();
    const pauses = (item: string): number => pausesOf(parsingJson(`[${item},${list}]`, { maxValues: 200_000 }));
    for (const item of ['"\\u00e9"', '1e300', '"__proto__"'])
      expect(pauses(item)).toBeGreaterThanOrEqual(pauses('"plain"') + 5);
  });
});
