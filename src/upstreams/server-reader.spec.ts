import { nothingYet } from './offer.js';
import { ServerReader } from './server-reader.service.js';
import type { Addressed } from './upstream-pool.js';
import type { Offer } from './upstream.types.js';

const server = { id: 's1', serverId: 'files' } as Addressed;
const saying = (instructions: string): Offer => ({ ...nothingYet, instructions });
const settled = () => new Promise((done) => setTimeout(done, 5));

describe('ServerReader', () => {
  /** Reads that wait for their server, in the order in which they began. */
  const open: ((offer: Offer) => void)[] = [];
  const kept: (string | undefined)[] = [];
  let isOpen = true;
  let changed: (of: Addressed) => void;
  beforeEach(() => {
    open.length = kept.length = 0;
    isOpen = true;
    const line = { offer: () => new Promise<Offer>((answer) => open.push(answer)) };
    const pool = {
      onChanged: (tell: typeof changed) => (changed = tell),
      to: () => ({ main: line }),
      lineTo: () => (isOpen ? line : undefined),
    };
    const offers = { keep: (_: unknown, offer: Offer) => Promise.resolve(void kept.push(offer.instructions)) };
    const none = {} as never;
    new ServerReader(none, none, offers as never, none, pool as never, none).onModuleInit();
  });

  it('keeps what was read last, however long an earlier look took', async () => {
    changed(server);
    changed(server);
    changed(server);
    await settled();
    expect(open).toHaveLength(1);
    open[0]!(saying('old'));
    await settled();
    expect(open).toHaveLength(2);
    open[1]!(saying('new'));
    await settled();
    expect([open.length, kept]).toEqual([2, ['old', 'new']]);
    changed(server);
    expect(open).toHaveLength(3);
  });

  it('opens no line again that went meanwhile', async () => {
    changed(server);
    changed(server);
    isOpen = false;
    open[0]!(saying('old'));
    await settled();
    expect(open).toHaveLength(1);
  });
});
