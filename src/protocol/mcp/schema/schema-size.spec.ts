import type { Json } from '../../../kernel/json.js';
import { isDeeperThan, measuringDepth } from './schema-size.js';

describe('isDeeperThan', () => {
  it.each<[Json, number]>([
    [1, 0],
    [[], 0],
    [[1], 1],
    [{ a: {} }, 1],
    [{ a: [null, 'x', { b: 1n }] }, 3],
  ])('counts the levels of %p', (value, levels) => {
    expect(isDeeperThan(value, levels)).toBe(false);
    expect(isDeeperThan(value, levels - 1)).toBe(true);
  });

  it('pauses within many values', () => {
    for (const list of [Array<Json>(100_000).fill(1), Array.from({ length: 50_000 }, () => ({ a: 1 }))]) {
      let pauses = 0;
      for (const work = measuringDepth({ list }, 10); !work.next().done;) pauses++;
      expect(pauses).toBeGreaterThanOrEqual(9);
    }
  });
});
