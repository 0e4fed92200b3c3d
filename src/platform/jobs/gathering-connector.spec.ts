import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { gathered } from './gathering-connector.js';

describe('a stream whose writes are gathered', () => {
  const sent: string[][] = [];
  const stream = (): Writable => {
    sent.length = 0;
    return gathered(
      new Writable({
        decodeStrings: false,
        write: (chunk: string, _, done) => (sent.push([chunk]), done()),
        writev: (chunks, done) => (sent.push(chunks.map(({ chunk }) => String(chunk))), done()),
      }),
    );
  };

  it('sends what is written in one turn at once, in its order, and the next turn by itself', async () => {
    const one = stream();
    one.write('a');
    one.write('b');
    expect(sent).toEqual([]);
    await turn();
    expect(sent).toEqual([['a', 'b']]);
    one.write('c');
    await turn();
    expect(sent.flat()).toEqual(['a', 'b', 'c']);
  });

  it('gathers what is written by whoever waited for the same', async () => {
    const one = stream();
    const event = turn();
    await Promise.all(['a', 'b', 'c'].map((word) => event.then(() => one.write(word))));
    await turn();
    expect(sent).toEqual([['a', 'b', 'c']]);
  });

  it('sends what was written before its end, and tells each writer', async () => {
    const one = stream();
    const told: string[] = [];
    one.write('a', () => told.push('a'));
    one.write('b', () => told.push('b'));
    await new Promise<void>((done) => one.end('c', done));
    expect([sent.flat(), told]).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b'],
    ]);
  });
});
