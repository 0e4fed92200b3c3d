import { BoundedMap } from './bounded-map.js';

describe('BoundedMap', () => {
  it('removes the entry that was set longest ago, and reports it', () => {
    const evicted: [string, number][] = [];
    const map = new BoundedMap<string, number>(2, (value, key) => evicted.push([key, value]));
    map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
    expect([...map]).toEqual([
      ['a', 3],
      ['c', 4],
    ]);
    expect(evicted).toEqual([['b', 2]]);
  });

  it('leaves an entry at its place while it is at most half full', () => {
    const map = new BoundedMap<string, number>(4);
    map.set('a', 1).set('b', 2).set('a', 3);
    expect([map.use('a'), [...map.keys()]]).toEqual([3, ['a', 'b']]);
    map.set('c', 4).set('a', 5);
    expect([...map.keys()]).toEqual(['b', 'c', 'a']);
  });

  it('keeps a used entry longer than a read one', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2);
    expect([map.use('a'), map.get('b'), map.use('missing')]).toEqual([1, 2, undefined]);
    map.set('c', 3);
    expect([...map.keys()]).toEqual(['a', 'c']);
  });
});
