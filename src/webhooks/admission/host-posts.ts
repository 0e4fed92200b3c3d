import { hasShare } from '../../platform/fair-share.js';
import { afterPost, afterProbe, closedBreaker, type Breaker, type BreakerEnd, type PostEnd } from './host-breaker.js';

/** Places for posts at the same time, of an org or of a sender. */
export class Limiter {
  inside = 0;
  /** True when its last post was short, and no post has waited in vain since. */
  recentlyFast = true;

  constructor(readonly max: number) {}

  get isFull(): boolean {
    return this.inside >= this.max;
  }
}

/** Places of one sender of an org: its share of those of the org. */
export class SenderLimiter extends Limiter {
  constructor(
    max: number,
    private readonly org: Limiter,
  ) {
    super(max);
  }

  override get isFull(): boolean {
    return hasShare(this.inside, this.org.inside, { all: this.org.max, ofMember: this.max });
  }
}

/** The posts and the breaker of one sender at a host. */
export class SenderAtHost extends Limiter {
  constructor(
    max: number,
    public breaker: Breaker,
  ) {
    super(max);
  }

  get isForgettable(): boolean {
    return this.inside === 0 && hasNoFailures(this.breaker);
  }
}

/** The posts of one org at a host. */
export class TenantAtHost {
  inside = 0;
  /** The senders: only those with posts under way, or with failures, are stored. */
  readonly senders = new Map<string, SenderAtHost>();
  /** Number of its last admission, in the order of all admissions. */
  last = 0;
  /** The last due time that was given to a deferred post. */
  slot = 0;

  isIdle(now: number): boolean {
    return this.senders.size === 0 && this.slot <= now;
  }

  insideOf(sender: string): number {
    return this.senders.get(sender)?.inside ?? 0;
  }

  /**
   * True when this org has its turn before the other: it has fewer posts under way, or as many and an older last
   * admission. @param more posts that were called in this round.
   */
  isBefore(other: TenantAtHost, more = 0, otherMore = 0): boolean {
    const difference = this.inside + more - other.inside - otherMore;
    return difference < 0 || (difference === 0 && this.last < other.last);
  }
}

/** The posts of all orgs at a host, and its breaker. */
export class Host extends Limiter {
  breaker: Breaker;
  private readonly tenants = new Map<string, TenantAtHost>();
  /** Orgs that got no answer since the last answer to any org. */
  private readonly silentTo = new Set<string>();

  constructor(max: number, now: number) {
    super(max);
    this.breaker = closedBreaker(now);
  }

  get openBreakers(): number {
    const senders = [...this.tenants.values()].flatMap((tenant) => [...tenant.senders.values()]);
    return [this, ...senders].filter(({ breaker }) => breaker.kind !== 'closed').length;
  }

  tenant(org: string): TenantAtHost {
    let tenant = this.tenants.get(org);
    if (!tenant) this.tenants.set(org, (tenant = new TenantAtHost()));
    return tenant;
  }

  /** A new sender is stored only when it enters. It leaves one place to others, in case that its posts do not end. */
  senderOf(tenant: TenantAtHost, sender: string, now: number): SenderAtHost {
    return tenant.senders.get(sender) ?? new SenderAtHost(this.max > 2 ? this.max - 1 : this.max, closedBreaker(now));
  }

  /** Notes how a post of an org ended. Returns true when the host is also silent to another org. */
  noteEnd(org: string, end: PostEnd): boolean {
    if (end === 'silent') this.silentTo.add(org);
    else if (end !== 'none') this.silentTo.clear();
    return this.silentTo.size > 1;
  }

  isRemovable(now: number): boolean {
    return (
      this.inside === 0 &&
      hasNoFailures(this.breaker) &&
      [...this.tenants.values()].every((tenant) => tenant.isIdle(now))
    );
  }

  /** The host is back: deferred posts may come at once, from all senders. */
  reopen(): void {
    for (const tenant of this.tenants.values()) {
      tenant.slot = 0;
      for (const [sender, senderAtHost] of tenant.senders) if (senderAtHost.inside === 0) tenant.senders.delete(sender);
    }
  }
}

const hasNoFailures = (breaker: Breaker): boolean =>
  breaker.kind === 'closed' && breaker.failures + breaker.inARow === 0;

/**
 * Registers a post at a breaker; an open breaker makes it the probe. The returned function takes the result of the
 * post, and returns true when that closed the breaker.
 */
export function enterBreaker(of: { breaker: Breaker }): (end: BreakerEnd, now: number) => boolean {
  if (of.breaker.kind !== 'open') {
    return (end, now) => {
      of.breaker = afterPost(of.breaker, end, now);
      return false;
    };
  }
  const { times } = of.breaker;
  of.breaker = { kind: 'half-open', times };
  return (end, now) => {
    of.breaker = afterProbe(times, end, now);
    return of.breaker.kind === 'closed';
  };
}
