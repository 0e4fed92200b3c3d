import type { JsonObject } from '../../kernel/json.js';
import { keptJson } from './kept-json.js';

const stored = (value: JsonObject) => JSON.parse(keptJson(value)) as JsonObject;

describe('JSON that a row stores', () => {
  it('equals the value, also with a NUL and a lone surrogate', () => {
    const value = { a: [1, null, true], text: 'é\u0000\ud800', deep: { er: 1.5 } };
    expect(stored(value)).toEqual(value);
    expect(keptJson(value)).not.toContain('\u0000');
  });

  it('contains no secret, recognised by name or by form', () => {
    const { password, note, api_key } = stored({ password: 'hunter-2', note: 'Bearer abcdefghij', api_key: 'k' });
    expect([password, note, api_key]).toEqual(['[redacted]', '[redacted]', '[redacted]']);
  });

  it('is cut to the limit when it is long, and is still JSON', () => {
    const fits = { text: 'x'.repeat(4_096 - '{"text":""}'.length) };
    expect(stored(fits)).toEqual(fits);
    const long = { token: 'hunter-2', text: '"😀"'.repeat(100_000) };
    const { truncated, characters, beginning } = stored(long) as Record<string, unknown>;
    expect([truncated, characters]).toEqual([true, expect.any(Number)]);
    expect(beginning).toMatch(/^\{"token":"\[redacted\]","text":/);
    expect(keptJson(long).length).toBeLessThan(2 * 4_096);
    expect(keptJson(long).isWellFormed()).toBe(true);
  });
});
