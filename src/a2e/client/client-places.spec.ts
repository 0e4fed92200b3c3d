import { Places } from './client-places.js';

describe('(E11) the places of messages at the gateway', () => {
  const places = new Places(2);
  const entered: string[] = [];
  const enter = (id: string, signal = new AbortController().signal) =>
    void places.take(id, signal).then(() => entered.push(id));
  const settled = () => new Promise(setImmediate);

  it('are given in order, when a reply came or the connection is lost, and not to a message that was given up', async () => {
    const given = new AbortController();
    enter('a');
    enter('b');
    enter('c', given.signal);
    enter('d');
    enter('e');
    await settled();
    expect(entered).toEqual(['a', 'b']);
    given.abort();
    places.free('unknown');
    places.free('a');
    await settled();
    expect(entered).toEqual(['a', 'b', 'd']);
    enter('f');
    enter('g');
    places.clear();
    await settled();
    expect(entered).toEqual(['a', 'b', 'd', 'e', 'f']);
    places.free('e');
    await settled();
    expect(entered.at(-1)).toBe('g');
  });
});
