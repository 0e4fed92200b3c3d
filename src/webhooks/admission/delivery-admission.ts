import { systemClock, type Clock } from '../../kernel/clock.js';
import {
  admission,
  afterPost,
  afterProbe,
  closedBreaker,
  ofGuest,
  ofHost,
  type Breaker,
  type BreakerEnd,
  type PostEnd,
} from './host-breaker.js';

/** How many posts may be under way at the same moment. */
export interface PostLimits {
  readonly perHost: number;
  readonly perOrg: number;
  /** Of one sender of an org. */
  readonly perSender: number;
}

/** Where a post goes and on whose behalf. */
export interface PostRequest {
  /** An origin. */
  readonly host: string;
  readonly org: string;
  /** Names the owner of the task, and its org. */
  readonly sender: string;
  /** Which of the visitors of the org: they stand in line once. */
  readonly key: string;
}

/** May post; `leave` when the post is over. */
export interface Permit {
  leave(end: PostEnd): void;
}

/** May not post now. `full`: too many do; `down`: the host takes nothing at present. */
export interface Deferral {
  readonly why: 'full' | 'down';
  /** Until its row is looked at again when nobody calls it before. */
  readonly inMs: number;
}

/** A post that is over within this time is worth waiting for. */
const patienceMs = 100;
/** What waits for a place, unless it is called. */
const fullMs = 10_000;
/** For so long somebody who was called, or whose row is due, is expected, and whose turn it is not stays behind. */
const expectedMs = 2_000;
/** Rows of one org come due at this distance, however many wait for a host: a look at each of them is all that a dead host costs. */
const slotMs = 20;
const maxQueued = 5_000;
/** A sender with so many in line has enough to fill its places until a sweep brings more. */
const enoughQueued = 200;
const maxHosts = 10_000;

class Limiter {
  inside = 0;
  /** Its last post was short, and nobody has waited in vain since. */
  recentlyFast = true;

  constructor(readonly most: number) {}

  get isFull(): boolean {
    return this.inside >= this.most;
  }
}

/** A host for one org. */
class TenantAtHost {
  inside = 0;
  private readonly senders = new Map<string, number>();
  /** Which of all admissions was its last. */
  last = 0;
  /** The last moment that was given to somebody who has to come again. */
  slot = 0;

  constructor(public breaker: Breaker) {}

  isIdle(now: number): boolean {
    return this.inside === 0 && this.slot <= now && isSpotless(this.breaker);
  }

  insideOf(sender: string): number {
    return this.senders.get(sender) ?? 0;
  }

  count(sender: string, more: 1 | -1): void {
    const now = this.insideOf(sender) + more;
    if (now > 0) this.senders.set(sender, now);
    else this.senders.delete(sender);
  }

  /** Whoever has fewer inside, and of those who has waited longest. @param more that were called just now. */
  isBefore(other: TenantAtHost, more = 0, otherMore = 0): boolean {
    const difference = this.inside + more - other.inside - otherMore;
    return difference < 0 || (difference === 0 && this.last < other.last);
  }
}

class Host extends Limiter {
  private readonly tenants = new Map<string, TenantAtHost>();

  constructor(
    most: number,
    public breaker: Breaker,
  ) {
    super(most);
  }

  get openBreakers(): number {
    return [this, ...this.tenants.values()].filter(({ breaker }) => breaker.kind !== 'closed').length;
  }

  tenant(org: string, now: number): TenantAtHost {
    let tenant = this.tenants.get(org);
    if (!tenant) this.tenants.set(org, (tenant = new TenantAtHost(closedBreaker(now))));
    return tenant;
  }

  isUnremarkable(now: number): boolean {
    return (
      this.inside === 0 && isSpotless(this.breaker) && [...this.tenants.values()].every((tenant) => tenant.isIdle(now))
    );
  }

  /** It is back: whoever waits may come at once. */
  forgetSlots(): void {
    for (const tenant of this.tenants.values()) tenant.slot = 0;
  }
}

interface Queued {
  readonly post: PostRequest;
  /** When it comes by itself; past once it was called. */
  until: number;
}

interface Waiter extends Queued {
  readonly timer: NodeJS.Timeout;
  readonly answer: (answer: Permit | Deferral) => void;
}

interface Caller extends Queued {
  readonly call: () => void;
}

/** Who may be called. */
interface Next {
  readonly caller: Caller;
  readonly tenant: TenantAtHost;
}

interface Limiters {
  readonly host: Host;
  readonly tenant: TenantAtHost;
  readonly org: Limiter;
  readonly sender: Limiter;
}

/**
 * Who may post now: so many to a host, so many of an org and of one sender of it, and nothing to a host that is down but one post at a
 * time that tries it (abuse case 28). A host that does not answer is down for all, one that refuses for the org it refuses; free places and tries go to
 * orgs in turn, and in an org to the sender with the fewest posts under way, so that none keeps others from a host that they share (abuse
 * case 36). It knows this process only and may forget everything: whoever is put off has a row that comes due by itself.
 */
export class DeliveryAdmission {
  private readonly hosts = new Map<string, Host>();
  private readonly orgs = new Map<string, Limiter>();
  private readonly senders = new Map<string, Limiter>();
  /** Who stands at the door for a moment, with a slot of its worker, and who went away to be called. */
  private readonly waitingBriefly = new Set<Waiter>();
  private readonly queue = new Map<string, Caller>();
  private admissions = 0;

  constructor(
    private readonly limits: PostLimits,
    private readonly clock: Pick<Clock, 'elapsed'> = systemClock,
  ) {}

  /** Those of hosts, and of hosts for one org. */
  get openBreakers(): number {
    let open = 0;
    for (const host of this.hosts.values()) open += host.openBreakers;
    return open;
  }

  get waiting(): number {
    const now = this.clock.elapsed();
    this.forgetLate(now);
    return this.waitingBriefly.size + [...this.queue.values()].filter(({ until }) => until > now).length;
  }

  /** Senders that have all their places and many in line: more of theirs needs no look now. */
  get saturated(): string[] {
    const full = [...this.senders].filter(([, limiter]) => limiter.isFull).map(([sender]) => sender);
    if (full.length === 0) return [];
    const now = this.clock.elapsed();
    const inLine = new Map<string, number>();
    for (const { post, until } of this.queue.values())
      if (until > now) inLine.set(post.sender, (inLine.get(post.sender) ?? 0) + 1);
    return full.filter((sender) => (inLine.get(sender) ?? 0) >= enoughQueued);
  }

  /** Waits for a place where that takes a moment only; a worker has better things to do than to wait for who is slow. */
  async enter(post: PostRequest): Promise<Permit | Deferral> {
    this.queue.delete(post.key);
    const places = this.limitersOf(post);
    const why = this.refusal(post, places);
    if (!why) return this.admit(post, places);
    const limiters = [places.host, places.org, places.sender];
    const isWorthIt = why === 'full' && limiters.every(({ recentlyFast }) => recentlyFast);
    return isWorthIt ? this.waitBriefly(post, limiters) : this.defer(post, why);
  }

  /** Puts somebody in line who was put off; who finishes calls the next. Only once, and at once when there is a place by now. */
  await(post: PostRequest, { inMs }: Deferral, call: () => void): void {
    this.queue.delete(post.key);
    if (!this.refusal(post, this.limitersOf(post))) return call();
    if (this.queue.size < maxQueued) this.queue.set(post.key, { post, until: this.clock.elapsed() + inMs, call });
  }

  /** Undefined when it may post now. */
  private refusal(post: PostRequest, { host, tenant, org, sender }: Limiters): Deferral['why'] | undefined {
    const now = this.clock.elapsed();
    const admitted = admission(host.breaker, now);
    if (admitted === 'nothing' || admission(tenant.breaker, now) === 'nothing') return 'down';
    if (host.isFull || org.isFull || sender.isFull) return 'full';
    const free = admitted === 'probe' ? 1 : host.most - host.inside;
    if (this.othersBefore(post, tenant, now) < free) return undefined;
    return admitted === 'probe' ? 'down' : 'full';
  }

  /** Orgs, and senders of its own org, that are expected at the host, may post, and have their turn before this one. */
  private othersBefore({ host: name, org, sender }: PostRequest, tenant: TenantAtHost, now: number): number {
    const others = new Set<string>();
    for (const { post, until } of [...this.waitingBriefly, ...this.queue.values()]) {
      const isOwn = post.org === org;
      const who = isOwn ? post.sender : post.org;
      if (post.host !== name || post.sender === sender || others.has(who) || now >= until + expectedMs) continue;
      const places = this.limitersOf(post);
      if (places.org.isFull || places.sender.isFull || admission(places.tenant.breaker, now) === 'nothing') continue;
      if (isOwn ? tenant.insideOf(post.sender) < tenant.insideOf(sender) : places.tenant.isBefore(tenant))
        others.add(who);
    }
    return others.size;
  }

  private admit(post: PostRequest, { host, tenant, org, sender }: Limiters): Permit {
    const begun = this.clock.elapsed();
    for (const place of [host, tenant, org, sender]) place.inside++;
    tenant.count(post.sender, 1);
    this.senders.set(post.sender, sender);
    tenant.last = ++this.admissions;
    const endOfHost = enterBreaker(host);
    const endOfGuest = enterBreaker(tenant);
    const leave = (end: PostEnd): void => {
      const now = this.clock.elapsed();
      for (const place of [host, tenant, org, sender]) place.inside--;
      tenant.count(post.sender, -1);
      for (const limiter of [host, org, sender]) limiter.recentlyFast = now - begun < patienceMs;
      if (endOfHost(ofHost(end), now)) host.forgetSlots();
      if (endOfGuest(ofGuest(end), now)) tenant.slot = 0;
      this.answerBrief();
      this.callNext(post, host);
      if (host.isUnremarkable(now)) this.hosts.delete(post.host);
      if (org.inside === 0) this.orgs.delete(post.org);
      if (sender.inside === 0) this.senders.delete(post.sender);
    };
    return { leave };
  }

  private waitBriefly(post: PostRequest, limiters: readonly Limiter[]): Promise<Permit | Deferral> {
    return new Promise((resolve) => {
      const giveUp = (): void => {
        for (const limiter of limiters) if (limiter.isFull) limiter.recentlyFast = false;
        this.waitingBriefly.delete(waiter);
        resolve(this.defer(post, 'full'));
      };
      const until = this.clock.elapsed() + patienceMs;
      const waiter: Waiter = { post, until, answer: resolve, timer: setTimeout(giveUp, patienceMs) };
      this.waitingBriefly.add(waiter);
    });
  }

  /** Whoever is let in may make way for somebody who stood before it, so all are asked again. */
  private answerBrief(): void {
    for (const waiter of this.waitingBriefly) {
      const places = this.limitersOf(waiter.post);
      const why = this.refusal(waiter.post, places);
      if (why === 'full') continue;
      clearTimeout(waiter.timer);
      this.waitingBriefly.delete(waiter);
      waiter.answer(why ? this.defer(waiter.post, why) : this.admit(waiter.post, places));
      return this.answerBrief();
    }
  }

  /** As many as there are places for, orgs and their senders in turn; who is called may find it taken, and comes again. */
  private callNext({ host: name, org }: PostRequest, host: Host): void {
    const now = this.clock.elapsed();
    this.forgetLate(now);
    const called = new Map<TenantAtHost, string[]>();
    const insideWith = ({ tenant, caller: { post } }: Next): number =>
      tenant.insideOf(post.sender) + (called.get(tenant) ?? []).filter((sender) => sender === post.sender).length;
    const isBefore = (one: Next, other: Next): boolean =>
      one.tenant === other.tenant
        ? insideWith(one) < insideWith(other)
        : one.tenant.isBefore(other.tenant, called.get(one.tenant)?.length, called.get(other.tenant)?.length);
    for (let free = host.most - host.inside; free > 0; free--) {
      let next: Next | undefined;
      const seen = new Set<string>();
      for (const caller of this.queue.values()) {
        const { post, until } = caller;
        if (until <= now || (post.host !== name && post.org !== org)) continue;
        // Of a sender the first one in line for a host stands for all behind it.
        const who = `${post.host} ${post.sender}`;
        if (seen.has(who)) continue;
        seen.add(who);
        const places = this.limitersOf(post);
        const one = { caller, tenant: places.tenant };
        if ((!next || isBefore(one, next)) && !this.refusal(post, places)) next = one;
      }
      if (!next) return;
      called.set(next.tenant, [...(called.get(next.tenant) ?? []), next.caller.post.sender]);
      next.caller.until = now;
      next.caller.call();
    }
  }

  private forgetLate(now: number): void {
    for (const [key, { until }] of this.queue) if (until + expectedMs <= now) this.queue.delete(key);
  }

  private defer(post: PostRequest, why: Deferral['why']): Deferral {
    const { host, tenant } = this.limitersOf(post);
    const now = this.clock.elapsed();
    const open = [host, tenant].flatMap(({ breaker }) => (breaker.kind === 'open' ? [breaker.until] : []));
    // An open one that lets somebody try lets another org try first.
    const soonest = why === 'full' || open.length === 0 ? now + fullMs : Math.max(now + expectedMs, ...open);
    tenant.slot = Math.max(soonest, tenant.slot + slotMs);
    return { why, inMs: Math.ceil(tenant.slot - now) };
  }

  private limitersOf({ host: name, org: id, sender: owner }: PostRequest): Limiters {
    const now = this.clock.elapsed();
    let host = this.hosts.get(name);
    if (!host) {
      if (this.hosts.size >= maxHosts) this.forgetOldest();
      this.hosts.set(name, (host = new Host(this.limits.perHost, closedBreaker(now))));
    }
    let org = this.orgs.get(id);
    if (!org) this.orgs.set(id, (org = new Limiter(this.limits.perOrg)));
    // Kept from its first post on: there are more senders than orgs.
    const sender = this.senders.get(owner) ?? new Limiter(this.limits.perSender);
    return { host, tenant: host.tenant(id, now), org, sender };
  }

  private forgetOldest(): void {
    for (const [name, { inside }] of this.hosts) if (inside === 0) return void this.hosts.delete(name);
  }
}

const isSpotless = (breaker: Breaker): boolean => breaker.kind === 'closed' && breaker.failures + breaker.inARow === 0;

/** Makes a try of a post that may go through an open breaker. What is returned takes its end, and says whether that closed it. */
function enterBreaker(of: { breaker: Breaker }): (end: BreakerEnd, now: number) => boolean {
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
