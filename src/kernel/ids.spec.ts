import { newId, randomBlock, randomHex } from './ids.js';

describe('ids and random bytes', () => {
  it.each([
    ['blocks', () => randomBlock(12).toString('hex'), /^[0-9a-f]{24}$/],
    ['hex', () => randomHex(12), /^[0-9a-f]{24}$/],
    ['ids', () => newId(), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/],
  ])('%s come from the pool, and none comes twice', (_, make, shape) => {
    const all = Array.from({ length: 1_000 }, make);
    expect(all.every((one) => shape.test(one))).toBe(true);
    expect(new Set(all).size).toBe(1_000);
  });
});
