import type { JsonObject } from '../../kernel/json.js';
import { keptJson } from './kept-json.js';

const kept = (value: JsonObject) => JSON.parse(keptJson(value)) as JsonObject;

describe('JSON that a row keeps', () => {
  it('is the value itself, with a NUL and half a character in it too', () => {
    const value = { a: [1, null, true], text: 'é\u0000\ud800', deep: { er: 1.5 } };
    expect(kept(value)).toEqual(value);
    expect(keptJson(value)).not.toContain('\u0000');
  });

  it('has no secret, by name or by look', () => {
    const { password, note, api_key } = kept({ password: 'hunter-2', note: 'Bearer abcdefghij', api_key: 'k' });
    expect([password, note, api_key]).toEqual(['[redacted]', '[redacted]', '[redacted]']);
  });

  it('is cut when it is long, to no more than was promised, and is JSON still', () => {
    const fits = { text: 'x'.repeat(4_096 - '{"text":""}'.length) };
    expect(kept(fits)).toEqual(fits);
    const long = { token: 'hunter-2', text: '"😀"'.repeat(100_000) };
    const { truncated, characters, beginning } = kept(long) as Record<string, unknown>;
    expect([truncated, characters]).toEqual([true, expect.any(Number)]);
    expect(beginning).toMatch(/^\{"token":"\[redacted\]","text":/);
    expect(keptJson(long).length).toBeLessThan(2 * 4_096);
    expect(keptJson(long).isWellFormed()).toBe(true);
  });
});
