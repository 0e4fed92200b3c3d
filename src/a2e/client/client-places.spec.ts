import { Places } from './client-places.js';

describe('(E11) slots for messages at the gateway', () => {
  const places = new Places(2);
  const entered: string[] = [];
  const enter = (id: string, signal = new AbortController().signal) =>
    void places.takePlace(id, signal).then(() => entered.push(id));
  const settled = () => new Promise(setImmediate);

  it('are assigned in order after a reply or a lost connection, and never to a canceled message', async () => {
    const abandoned = new AbortController();
    enter('a');
    enter('b');
    enter('c', abandoned.signal);
    enter('d');
    enter('e');
    await settled();
    expect(entered).toEqual(['a', 'b']);
    abandoned.abort();
    places.freePlace('unknown');
    places.freePlace('a');
    await settled();
    expect(entered).toEqual(['a', 'b', 'd']);
    enter('f');
    enter('g');
    places.clear();
    await settled();
    expect(entered).toEqual(['a', 'b', 'd', 'e', 'f']);
    places.freePlace('e');
    await settled();
    expect(entered.at(-1)).toBe('g');
  });
});
