import { RialtoError } from '../../kernel/errors.js';
import { ProgramShares } from './program-shares.js';

describe('programs that one caller uses at once (E3)', () => {
  const wait = { timeoutMs: 60_000 };
  const [one, two, three] = [{}, {}, {}];
  let shares: ProgramShares;
  beforeEach(() => {
    shares = new ProgramShares(2, (most) => new RialtoError('unavailable', { message: `${most} in use` }));
  });

  it('are so many, of which it may call each as often as it likes, whatever others call', async () => {
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

  it('are waited for until the last call at one of them is over, by calls of the same program together', async () => {
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

  it('are not waited for by calls that were canceled', async () => {
    const ends = [await shares.enter('bad', one, wait), await shares.enter('bad', two, wait)];
    const left = new AbortController();
    const waiting = shares.enter('bad', three, { ...wait, signal: left.signal });
    left.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'canceled' });
    await expect(shares.enter('bad', three, { ...wait, signal: left.signal })).rejects.toMatchObject({
      code: 'canceled',
    });
    for (const end of ends) end();
    expect(shares.isEmpty).toBe(true);
  });
});
