import { CardCache } from './card-cache.js';

const card = (bytes: number) => ({ body: 'x'.repeat(bytes), etag: '"x"', lastModified: new Date(0) });

describe('the cache of cards', () => {
  it('drops the least recently used cards when the total size is too large', () => {
    const cache = new CardCache(10_000);
    for (const key of ['a', 'b', 'c']) cache.set(key, card(2_500));
    expect(cache.get('a')).toBeDefined();
    cache.set('d', card(2_500));
    expect(['a', 'b', 'c', 'd'].filter((key) => cache.get(key))).toEqual(['a', 'c', 'd']);
  });

  it('counts a replaced card once, and stores no card that alone exceeds the limit', () => {
    const cache = new CardCache(10_000);
    for (let round = 0; round < 10; round++) cache.set('a', card(4_000));
    cache.set('b', card(4_000));
    expect([cache.get('a'), cache.get('b')]).not.toContain(undefined);
    cache.set('c', card(20_000));
    expect(['a', 'b', 'c'].filter((key) => cache.get(key))).toEqual([]);
    cache.set('d', card(4_000));
    expect(cache.get('d')).toBeDefined();
  });
});
