import { createServer, connect } from 'node:net';
import { once } from 'node:events';
import { inTurns, TurnBudget } from './in-turns.js';

const busy = (ms: number) => {
  for (const begun = performance.now(); performance.now() - begun < ms;);
};

/** What happened, in order: the pieces of work that begins where a socket is answered, and the turns of everybody else. */
async function asSocketsAreAnswered(work: (tell: (what: string) => void) => Promise<unknown>): Promise<string[]> {
  const told: string[] = [];
  const server = createServer((socket) => socket.on('error', () => undefined).end('x')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1');
  await new Promise<void>((done, failed) =>
    socket.once('data', () => {
      const others = setInterval(() => told.push('others'), 0);
      work((what) => told.push(what))
        .finally(() => clearInterval(others))
        .then(() => done(), failed);
    }),
  );
  socket.destroy();
  server.close();
  return told;
}

const between = (told: string[]) => told.join(' ').replaceAll(/others( others)+/g, 'others');

describe('inTurns', () => {
  it('serves others after each long piece, the first one, too', async () => {
    function* pieces(tell: (what: string) => void) {
      for (const piece of ['one', 'two', 'three']) {
        tell(piece);
        busy(6);
        yield;
      }
    }
    const told = await asSocketsAreAnswered((tell) => inTurns(pieces(tell)));
    expect(between(told)).toMatch(/^one others two others three( others)?$/);
  });
});

describe('TurnBudget', () => {
  it('lets many that ask at once do a few milliseconds of work a turn', async () => {
    const budget = new TurnBudget();
    const told = await asSocketsAreAnswered((tell) => {
      const ask = async (what: string): Promise<void> => {
        while (budget.wait) await budget.wait;
        budget.spend(() => (tell(what), busy(6)));
      };
      return Promise.all(['one', 'two', 'three'].map(ask));
    });
    expect(between(told)).toMatch(/^one others two others three( others)?$/);
  });
});
