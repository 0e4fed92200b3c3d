import { nothingYet } from './storage/offer.js';
import { ServerReader } from './server-reader.js';
import type { Addressed } from './connections/upstream-pool.js';
import type { Offer } from './upstream.types.js';

const server = { id: 's1', serverId: 'files' } as Addressed;
const saying = (instructions: string): Offer => ({ ...nothingYet, instructions });
const settled = () => new Promise((done) => setTimeout(done, 5));

describe('ServerReader', () => {
  /** Reads that wait for their server, in the order in which they began. */
  const open: ((offer: Offer) => void)[] = [];
  const kept: (string | undefined)[] = [];
  let isOpen = true;
  let hasOtherTools = false;
  let changed: (of: Addressed) => void;
  let read: (of: Addressed) => Promise<unknown>;
  beforeEach(() => {
    open.length = kept.length = 0;
    isOpen = true;
    hasOtherTools = false;
    const line = { offer: () => new Promise<Offer>((answer) => open.push(answer)) };
    const pool = {
      onChanged: (...given: [typeof changed, typeof read]) => ([changed, read] = given),
      to: () => ({ main: line }),
      lineTo: () => (isOpen ? line : undefined),
    };
    const keep = (_: unknown, { instructions }: Offer) => {
      kept.push(instructions);
      return Promise.resolve({ isNew: false, hasOtherTools });
    };
    const none = {} as never;
    new ServerReader(none, none, { keep } as never, none, pool as never, none).onModuleInit();
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

  it('looks again for whoever asks during a look, for that may have read what was before', async () => {
    const [first, second] = [read(server), read(server)];
    open[0]!(saying('old'));
    expect(await first).toBeUndefined();
    await settled();
    expect(open).toHaveLength(2);
    open[1]!(saying('new'));
    expect([await second, kept]).toEqual([undefined, ['old', 'new']]);
  });

  it('does not look as often as a server likes whose tools are others each time, but for whoever calls it', async () => {
    hasOtherTools = true;
    changed(server);
    open[0]!(saying('one'));
    await settled();
    changed(server);
    changed(server);
    await settled();
    expect(open).toHaveLength(1);
    void read(server);
    expect(open).toHaveLength(2);
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
