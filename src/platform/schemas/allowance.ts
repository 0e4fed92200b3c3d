/** What each of many may spend: so much at once, and so much a second. Pure; whoever has not spent for long is forgotten. */
export class Allowance {
  private readonly accounts = new Map<string, { left: number; at: number }>();

  constructor(
    private readonly bounds: { readonly most: number; readonly perSecond: number },
    private readonly mostAccounts = 10_000,
  ) {}

  /** Whether anything is left. @param at milliseconds that never step back. */
  has(who: string, at: number): boolean {
    const { most, perSecond } = this.bounds;
    const { left, at: before } = this.accounts.get(who) ?? { left: most, at };
    const now = Math.min(most, left + ((at - before) / 1_000) * perSecond);
    this.accounts.delete(who);
    this.accounts.set(who, { left: now, at });
    if (this.accounts.size > this.mostAccounts) this.accounts.delete(this.accounts.keys().next().value!);
    return now > 0;
  }

  /** Whoever has anything left may spend more than that, and waits the longer. */
  spend(who: string, amount: number): void {
    const account = this.accounts.get(who);
    if (account) account.left -= amount;
  }
}
