import { Allowance } from './allowance.js';

describe('Allowance', () => {
  it('allows each account a burst, then an amount per second', () => {
    const spent = new Allowance({ most: 100, perSecond: 10 });
    expect(spent.has('a', 0)).toBe(true);
    spent.spend('a', 150);
    expect([spent.has('a', 4_000), spent.has('b', 4_000)]).toEqual([false, true]);
    expect([spent.has('a', 5_000), spent.has('a', 5_100)]).toEqual([false, true]);
    spent.spend('a', 1);
    expect(spent.has('a', 5_100)).toBe(false);
    expect(spent.has('a', 1_000_000)).toBe(true);
    spent.spend('a', 99);
    expect(spent.has('a', 1_000_000)).toBe(true);
  });

  it('forgets the account that was used longest ago', () => {
    const spent = new Allowance({ most: 1, perSecond: 0 }, 2);
    for (const account of ['a', 'b', 'c']) {
      spent.has(account, 0);
      spent.spend(account, 1);
    }
    expect([spent.has('c', 0), spent.has('b', 0), spent.has('a', 0)]).toEqual([false, false, true]);
  });
});
