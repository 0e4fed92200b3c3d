import { Random } from '../../test/support/fuzz/random.js';
import { parseJson } from '../protocol/json-text.js';
import { parseLongJson, restAfter, stringifyLong } from './turns.js';

const texts = ['', 'a', '"', '\\', '\\"', '[{', '}],', ':', 'é\u0000\ud800', 'word '.repeat(50)];
const scalars = [0, -1.5, 1e300, true, false, null, 12345678901234567890n, ...texts];

/** Makes a value of about so many values. */
function valueOf(random: Random, size: number): unknown {
  if (size <= 1) return random.pick(scalars);
  const length = random.pick([1, 2, 3, size]);
  const items = Array.from({ length }, () => valueOf(random, Math.floor((size * random.next() * 2) / length)));
  if (random.chance(0.5)) return items;
  return Object.fromEntries(items.map((item, index) => [`${random.pick(texts)}${random.whole(size)} ${index}`, item]));
}

/** Writes blanks between the tokens of a text without blanks in its strings. */
function spaced(random: Random, text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|[[\]{},:]/g, (token) => (random.chance(0.1) ? `\n ${token}\t` : token));
}

function damaged(random: Random, text: string): string {
  const at = random.whole(text.length);
  const structural = [...text.matchAll(/[[\]{},:"]/g)];
  const { index = at } = random.chance(0.8) ? random.pick(structural) : {};
  const instead = random.pick(['', ',', ':', '[', ']', '{', '}', '"', ' ', '1', '__proto__', ',,', '[]', '{}', '],[']);
  return text.slice(0, index) + instead + text.slice(index + random.whole(2));
}

describe('long JSON', () => {
  const longOnes = Array.from({ length: 20 }, (_, seed) => {
    const random = new Random(seed);
    let value: unknown;
    let text = '';
    while (text.length < 70_000 || text.length > 200_000) text = JSON.stringify((value = valueOf(random, 10_000)));
    return { random, value, text };
  });

  // Compared as texts: to compare the values takes minutes.
  it('is parsed as at once', async () => {
    for (const { random, text } of longOnes)
      for (const form of [text, spaced(random, text), `\ufeff ${text}\n`])
        expect(JSON.stringify(await parseLongJson(form))).toBe(JSON.stringify(parseJson(form)));
  });

  it('is refused as at once', async () => {
    const outcomes = { right: 0, wrong: 0 };
    for (const { random, text } of longOnes)
      for (let time = 0; time < 40; time++) {
        const form = damaged(random, text);
        const atOnce = parseJson(form);
        expect(JSON.stringify(await parseLongJson(form))).toBe(JSON.stringify(atOnce));
        outcomes[atOnce.ok ? 'right' : 'wrong']++;
      }
    expect(outcomes.wrong).toBeGreaterThan(outcomes.right);
    expect(outcomes.right).toBeGreaterThan(100);
  });

  it.each([
    ['text after it', (long: string) => `[${long}]x`],
    ['text before it', (long: string) => `x[${long}]`],
    ['brackets that do not match', (long: string) => `[${long}}`],
    ['a missing item', (long: string) => `[${long},]`],
    ['a missing item between long ones', (long: string) => `[[${long}],,[${long}]]`],
    ['a missing item after a long one', (long: string) => `[[${long}], ]`],
    ['a missing name', (long: string) => `{[${long}]}`],
    ['two colons', (long: string) => `{"a"::[${long}]}`],
    ['a name without quotes', (long: string) => `{a:[${long}]}`],
    ['text after a long member', (long: string) => `{"a":[${long}] "b":1}`],
    ['an end that is missing', (long: string) => `[[${long}]`],
    ['an end too many', (long: string) => `[${long}]]`],
  ])('is refused with %s', async (_, make) => {
    expect(await parseLongJson(make(Array(40_000).fill('1').join()))).toEqual({ ok: false, reason: 'not JSON' });
  });

  it('keeps the last of members with one name, and none with the name of a prototype', async () => {
    const long = `[${Array(20_000).fill('1').join()}]`;
    const parsed = await parseLongJson(`{"a":1,"__proto__":${long},"b":${long},"a":${long},"__proto__":{"c":1}}`);
    const list = Array(20_000).fill(1);
    expect(parsed).toEqual({ ok: true, value: { a: list, b: list } });
    expect(Object.keys((parsed as { value: object }).value)).toEqual(['a', 'b']);
  });

  it('is parsed with any nesting that the limits allow', async () => {
    const deep = `${'{"a":['.repeat(20_000)}1${']}'.repeat(20_000)}`;
    const parsed = await parseLongJson(deep, { maxDepth: 40_000 });
    let [inner, levels] = [(parsed as { value: any }).value, 0];
    for (; typeof inner === 'object'; inner = inner.a[0]) levels++;
    expect([inner, levels]).toEqual([1, 20_000]);
    expect(await parseLongJson(deep, { maxDepth: 39_999 })).toEqual({ ok: false, reason: 'nested deeper than 39999' });
  });

  it('may be a list of blanks', async () => {
    expect(await parseLongJson(`[${' '.repeat(70_000)}]`)).toEqual({ ok: true, value: [] });
  });

  it('is written as at once', async () => {
    for (const { value } of longOnes) expect(await stringifyLong(value)).toBe(JSON.stringify(value));
    const left = {
      a: undefined,
      b: () => 1,
      c: longOnes.map(({ value }) => value),
      d: [undefined, new Date(0)],
      e: [],
    };
    expect(await stringifyLong(left)).toBe(JSON.stringify(left));
    for (const short of [undefined, null, {}, [], 'x', { a: undefined }, new Date(0), 5n])
      expect(await stringifyLong([short])).toBe(JSON.stringify([short]));
  });

  it.each([
    ['parsed', (text: string) => parseLongJson(text)],
    ['written', (_: string, value: unknown) => stringifyLong(value)],
  ])('lets others go first while it is %s', async (_, work) => {
    const value = Array.from({ length: 90 }, (_, list) =>
      Object.fromEntries(Array.from({ length: 900 }, (__, index) => [`${list} ${index}`, 'text'])),
    );
    let turns = 0;
    const count = (): void => void (turns++, (next = setImmediate(count)));
    let next = setImmediate(count);
    await work(JSON.stringify(value), value);
    clearImmediate(next);
    expect(turns).toBeGreaterThan(1);
  });

  it('lets others go first after work on it, and after work on short values does not', async () => {
    let turns = 0;
    const next = setImmediate(() => turns++);
    expect(restAfter({ text: 'x'.repeat(1_000) })).toBeUndefined();
    await restAfter(Array(100_000).fill(1));
    expect(turns).toBe(1);
    clearImmediate(next);
  });

  it('is parsed at once when it is short', async () => {
    let hasWaited = false;
    const next = setImmediate(() => (hasWaited = true));
    await parseLongJson(JSON.stringify('x'.repeat(1_000)));
    clearImmediate(next);
    expect(hasWaited).toBe(false);
  });
});
