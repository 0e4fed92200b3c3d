import { BoundedMap } from '../../kernel/bounded-map.js';

/**
 * A token bucket for each account: a burst, and then an amount per second. It has no clock of its own; the account
 * that was used longest ago is forgotten first.
 */
export class Allowance {
  private readonly accounts: BoundedMap<string, { left: number; at: number }>;

  constructor(
    private readonly bounds: { readonly most: number; readonly perSecond: number },
    maxAccounts = 10_000,
  ) {
    this.accounts = new BoundedMap(maxAccounts);
  }

  /** True when the account has something left. @param at milliseconds of a clock that never goes back. */
  has(account: string, at: number): boolean {
    const { most, perSecond } = this.bounds;
    const { left, at: before } = this.accounts.get(account) ?? { left: most, at };
    const now = Math.min(most, left + ((at - before) / 1_000) * perSecond);
    this.accounts.set(account, { left: now, at });
    return now > 0;
  }

  /** Takes an amount. An account with anything left may overdraw, and then waits longer. */
  spend(account: string, amount: number): void {
    const entry = this.accounts.get(account);
    if (entry) entry.left -= amount;
  }
}
