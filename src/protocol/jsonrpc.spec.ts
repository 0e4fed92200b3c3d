import fc from 'fast-check';
import {
  containsUnstorable,
  storableJson,
  errorResponse,
  parseJson,
  parseRequest,
  parseResponse,
  resultResponse,
} from './jsonrpc.js';

const request = (more: object): unknown => ({ jsonrpc: '2.0', id: 1, method: 'message/send', ...more });
const refused = (text: string): boolean => !parseJson(text).ok;

describe('parseRequest', () => {
  it('reads requests and notifications', () => {
    expect(parseRequest(request({ params: { a: 1 } }))).toEqual({
      ok: true,
      request: { id: 1, method: 'message/send', params: { a: 1 } },
    });
    expect(parseRequest({ jsonrpc: '2.0', method: 'x' })).toEqual({ ok: true, request: { method: 'x' } });
    expect(parseRequest(request({ id: null }))).toMatchObject({ ok: true, request: { id: null } });
    expect(parseRequest(request({ id: 'a', params: [] }))).toMatchObject({
      ok: true,
      request: { id: 'a', params: [] },
    });
  });

  it.each([
    ['no object', 7, null],
    ['a batch', [request({})], null],
    ['null', null, null],
    ['another version', request({ jsonrpc: '1.0' }), 1],
    ['no method', request({ method: undefined }), 1],
    ['an empty method', request({ method: '' }), 1],
    ['params as text', request({ params: 'x' }), 1],
    ['params null', request({ params: null }), 1],
    ['an object id', request({ id: {} }), null],
    ['a huge id', request({ id: 'x'.repeat(2_000) }), null],
    ['a boolean id', request({ id: true }), null],
  ])('refuses %s and keeps a readable id', (_name, value, id) => {
    expect(parseRequest(value)).toMatchObject({ ok: false, id });
  });

  it('reads own members only', () => {
    expect(parseRequest(Object.create({ jsonrpc: '2.0', id: 3, method: 'x' }))).toMatchObject({ ok: false, id: null });
  });
});

describe('parseResponse', () => {
  it('reads results and errors', () => {
    expect(parseResponse(resultResponse(1, { a: 1 }))).toEqual({ ok: true, id: 1, result: { a: 1 } });
    expect(parseResponse(errorResponse('x', -32602, 'no', { a: 1 }))).toEqual({
      ok: true,
      id: 'x',
      error: { code: -32602, message: 'no', data: { a: 1 } },
    });
    expect(errorResponse(null, 1, 'm')).toEqual({ jsonrpc: '2.0', id: null, error: { code: 1, message: 'm' } });
  });

  it.each([
    {},
    [],
    null,
    'x',
    { jsonrpc: '2.0' },
    { jsonrpc: '2.0', id: 1, result: 1, error: { code: 1, message: 'm' } },
  ])('refuses %j', (value) => expect(parseResponse(value).ok).toBe(false));

  it.each([{ code: 'x', message: 'm' }, { code: 1.5, message: 'm' }, { code: 1 }, [], 'text', 0])(
    'refuses the error %j',
    (error) => expect(parseResponse({ jsonrpc: '2.0', id: 1, error }).ok).toBe(false),
  );
});

describe('parseJson', () => {
  it('skips a byte order mark (C05), refuses bad syntax and numbers out of range', () => {
    expect(parseJson('\ufeff{}')).toEqual({ ok: true, value: {} });
    for (const text of ['\ufeff\ufeff{}', '', '{', "{'a':1}", '1e400', '-1e400', `[${'9'.repeat(400)}]`, 'NaN']) {
      expect(refused(text)).toBe(true);
    }
    expect(parseJson('1e300')).toEqual({ ok: true, value: 1e300 });
    expect(parseJson('"1e400"')).toEqual({ ok: true, value: '1e400' });
  });

  it('refuses depth without a stack overflow', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    expect(refused(nested(64))).toBe(false);
    expect(refused(nested(65))).toBe(true);
    expect(parseJson(nested(100_000))).toEqual({ ok: false, reason: 'nested deeper than 64' });
    expect(refused('{"a":'.repeat(100_000))).toBe(true);
    expect(parseJson(nested(100), { maxDepth: 100 }).ok).toBe(true);
    expect(parseJson(JSON.stringify(`\\"${'['.repeat(99)}`)).ok).toBe(true);
  });

  it('refuses too many members of large objects at any place, and accepts as many in small objects', () => {
    const wide = (length: number) => `{${Array.from({ length }, (_, index) => `"a:${index}":"x:y"`).join()}}`;
    const tooMany = { ok: false, reason: 'more than 20000 members in objects of 1000 or more' };
    expect(refused(`[${wide(20_000)},${wide(999)}]`)).toBe(false);
    expect(parseJson(`{"a":[1,${wide(20_001)}]}`)).toEqual(tooMany);
    expect(parseJson(`[${wide(19_000)},${wide(1_001)}]`)).toEqual(tooMany);
    expect(refused(`[${`${wide(999)},`.repeat(40)}0]`)).toBe(false);
    expect(refused(`[${'{"a":0},'.repeat(30_000)}0]`)).toBe(false);
  });

  it('refuses too many integers that a double cannot hold, and accepts as many other numbers', () => {
    const list = (number: string, length: number) => `[${Array.from({ length }, () => number).join()}]`;
    expect(refused(list('12345678901234567', 10_000))).toBe(false);
    expect(parseJson(list('-12345678901234567', 10_001))).toEqual({
      ok: false,
      reason: 'more than 10000 integers of 17 digits or more',
    });
    for (const number of [
      '1700000000000000',
      '0.12345678901234567',
      '"12345678901234567"',
      '1234567890.12345678901234567',
    ])
      expect(refused(list(number, 20_000))).toBe(false);
  });

  it('drops __proto__ in any spelling, and pollutes nothing', () => {
    for (const key of ['__proto__', String.raw`\u005f_proto__`, String.raw`__pr\u006fto__`]) {
      const parsed = parseJson(`{"a":[{"${key}":{"polluted":true},"constructor":{"prototype":1}}]}`);
      expect(parsed).toEqual({ ok: true, value: { a: [{ constructor: { prototype: 1 } }] } });
      const copy = Object.assign({}, (parsed as unknown as { value: { a: [object] } }).value.a[0]) as Record<
        string,
        unknown
      >;
      expect(copy.polluted).toBeUndefined();
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    }
  });

  it('reads the same values as JSON.parse', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5, noUnicodeString: false }), (text) => {
        fc.pre(!text.includes('__proto__'));
        expect(parseJson(text)).toEqual({ ok: true, value: JSON.parse(text) });
      }),
    );
    fc.assert(fc.property(fc.string(), (text) => typeof parseJson(text).ok === 'boolean'));
  });
});

describe('containsUnstorable', () => {
  it('finds NUL and lone surrogates in values and keys, at any depth', () => {
    for (const value of ['\u0000', ['a\ud800'], { a: { '\udc00b': 1 } }, { a: [{ b: 'x\u0000' }] }]) {
      expect(containsUnstorable(value)).toBe(true);
    }
    expect(containsUnstorable({ a: ['\ud83d\ude00', null, 1, true, {}] })).toBe(false);
    let deep: unknown = 'x';
    for (let depth = 0; depth < 100_000; depth++) deep = [deep];
    expect(containsUnstorable(deep)).toBe(false);
  });
});

describe('storableJson', () => {
  it('replaces NUL and lone surrogates by U+FFFD in values and names, and changes nothing else', () => {
    const sound = { a: ['😀', null, 1, true, {}] };
    expect(storableJson(sound)).toBe(sound);
    expect(storableJson({ 'a\u0000': ['\ud800😀', { b: 'x\udc00' }, 1, null] })).toEqual({
      'a\ufffd': ['\ufffd😀', { b: 'x\ufffd' }, 1, null],
    });
    expect(storableJson('x'.repeat(5_000) + '\u0000')).toHaveLength(5_001);
  });
});
