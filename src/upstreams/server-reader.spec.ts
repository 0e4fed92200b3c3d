import { nothingYet } from './storage/offer.js';
import { ServerReader } from './server-reader.js';
import type { Addressed } from './connections/upstream-pool.js';
import type { Offer } from './upstream.types.js';

const server = { id: 's1', serverId: 'files' } as Addressed;
const offerWith = (instructions: string): Offer => ({ ...nothingYet, instructions });
const settled = () => new Promise((done) => setTimeout(done, 5));

describe('ServerReader', () => {
  /** Pending reads, in the order in which they started. */
  const open: ((offer: Offer) => void)[] = [];
  const stored: (string | undefined)[] = [];
  let isOpen = true;
  let hasOtherTools = false;
  let changed: (of: Addressed) => void;
  let read: (of: Addressed) => Promise<unknown>;
  beforeEach(() => {
    open.length = stored.length = 0;
    isOpen = true;
    hasOtherTools = false;
    const connection = { offer: () => new Promise<Offer>((answer) => open.push(answer)) };
    const pool = {
      onChanged: (...given: [typeof changed, typeof read]) => ([changed, read] = given),
      to: () => ({ shared: connection }),
      lineTo: () => (isOpen ? connection : undefined),
    };
    const keepOffer = (_: unknown, _user: unknown, { instructions }: Offer) => {
      stored.push(instructions);
      return Promise.resolve({ isNew: false, hasOtherTools });
    };
    const none = {} as never;
    new ServerReader(none, { keepOffer } as never, pool as never, none).onModuleInit();
  });

  it('stores the latest read, even when an earlier read took long', async () => {
    changed(server);
    changed(server);
    changed(server);
    await settled();
    expect(open).toHaveLength(1);
    open[0]!(offerWith('old'));
    await settled();
    expect(open).toHaveLength(2);
    open[1]!(offerWith('new'));
    await settled();
    expect([open.length, stored]).toEqual([2, ['old', 'new']]);
    changed(server);
    expect(open).toHaveLength(3);
  });

  it('reads again for a caller that asks during a read, because that read may be outdated', async () => {
    const [first, second] = [read(server), read(server)];
    open[0]!(offerWith('old'));
    expect(await first).toBeUndefined();
    await settled();
    expect(open).toHaveLength(2);
    open[1]!(offerWith('new'));
    expect([await second, stored]).toEqual([undefined, ['old', 'new']]);
  });

  it('delays reads of a server that changes its tools each time, except for a caller of that server', async () => {
    hasOtherTools = true;
    changed(server);
    open[0]!(offerWith('one'));
    await settled();
    changed(server);
    changed(server);
    await settled();
    expect(open).toHaveLength(1);
    void read(server);
    expect(open).toHaveLength(2);
  });

  it('does not reopen a connection that was closed meanwhile', async () => {
    changed(server);
    changed(server);
    isOpen = false;
    open[0]!(offerWith('old'));
    await settled();
    expect(open).toHaveLength(1);
  });
});
