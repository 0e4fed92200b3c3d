import { createServer, connect } from 'node:net';
import { once } from 'node:events';
import { eachInTurns, inTurns, TurnBudget } from './in-turns.js';

const busy = (ms: number) => {
  for (const begun = performance.now(); performance.now() - begun < ms;);
};

/**
 * Runs work in the callback of a socket's answer, and returns what happened, in order: the pieces of work, and the
 * turns of others.
 */
async function runInSocketCallback(work: (note: (what: string) => void) => Promise<unknown>): Promise<string[]> {
  const events: string[] = [];
  const server = createServer((socket) => socket.on('error', () => undefined).end('x')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1');
  await new Promise<void>((done, failed) =>
    socket.once('data', () => {
      const others = setInterval(() => events.push('others'), 0);
      work((what) => events.push(what))
        .finally(() => clearInterval(others))
        .then(() => done(), failed);
    }),
  );
  socket.destroy();
  server.close();
  return events;
}

const summary = (events: string[]) => events.join(' ').replaceAll(/others( others)+/g, 'others');

describe('inTurns', () => {
  it('serves others after each long piece, also after the first', async () => {
    function* pieces(note: (what: string) => void) {
      for (const piece of ['one', 'two', 'three']) {
        note(piece);
        busy(6);
        yield;
      }
    }
    const events = await runInSocketCallback((note) => inTurns(pieces(note)));
    expect(summary(events)).toMatch(/^one others two others three( others)?$/);
  });
});

describe('eachInTurns', () => {
  it('returns the results in order, and serves others after each long piece', async () => {
    let results: number[] = [];
    const events = await runInSocketCallback(async (note) => {
      results = await eachInTurns(['one', 'two', 'three'], async (piece) => (note(piece), busy(6), piece.length));
    });
    expect(summary(events)).toMatch(/^one others two others three( others)?$/);
    expect(results).toEqual([3, 3, 5]);
  });
});

describe('TurnBudget', () => {
  it('limits many concurrent callers to a few milliseconds of work in each turn', async () => {
    const budget = new TurnBudget();
    const events = await runInSocketCallback((note) => {
      const ask = async (what: string): Promise<void> => {
        while (budget.wait) await budget.wait;
        budget.spend(() => (note(what), busy(6)));
      };
      return Promise.all(['one', 'two', 'three'].map(ask));
    });
    expect(summary(events)).toMatch(/^one others two others three( others)?$/);
  });
});
