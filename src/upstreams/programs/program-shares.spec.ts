import { RialtoError } from '../../kernel/errors.js';
import { ProgramShares } from './program-shares.js';

describe('ProgramShares: limit of programs that one caller uses at once (E3)', () => {
  const wait = { timeoutMs: 60_000 };
  const [one, two, three] = [{}, {}, {}];
  let shares: ProgramShares;
  beforeEach(() => {
    shares = new ProgramShares(2, (most) => new RialtoError('unavailable', { message: `${most} in use` }));
  });

  it('limits the programs of one caller, but not its calls to each of them or the calls of others', async () => {
    const ends = [
      await shares.enter('bad', one, wait),
      await shares.enter('bad', one, wait),
      await shares.enter('bad', two, wait),
    ];
    await expect(shares.enter('bad', three, { timeoutMs: 1 })).rejects.toMatchObject({
      code: 'unavailable',
      message: '2 in use',
    });
    ends.push(await shares.enter('bad', two, wait), await shares.enter('good', three, wait));
    for (const end of ends) end();
    expect(shares.isEmpty).toBe(true);
  });

  it('lets calls wait until the last call at a program ends, and admits waiters for one together', async () => {
    const ends = [
      await shares.enter('bad', one, wait),
      await shares.enter('bad', one, wait),
      await shares.enter('bad', two, wait),
    ];
    const order: string[] = [];
    const waiting = ['first', 'second'].map(async (name) => {
      const end = await shares.enter('bad', three, wait);
      order.push(name);
      return end;
    });
    ends[0]!();
    await Promise.resolve();
    expect(order).toEqual([]);
    ends[1]!();
    for (const end of await Promise.all(waiting)) end();
    expect(order).toEqual(['first', 'second']);
    ends[2]!();
    expect(shares.isEmpty).toBe(true);
  });

  it('removes canceled calls from the waiters', async () => {
    const ends = [await shares.enter('bad', one, wait), await shares.enter('bad', two, wait)];
    const canceled = new AbortController();
    const waiting = shares.enter('bad', three, { ...wait, signal: canceled.signal });
    canceled.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'canceled' });
    await expect(shares.enter('bad', three, { ...wait, signal: canceled.signal })).rejects.toMatchObject({
      code: 'canceled',
    });
    for (const end of ends) end();
    expect(shares.isEmpty).toBe(true);
  });
});
