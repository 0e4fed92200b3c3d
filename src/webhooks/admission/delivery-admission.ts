import { systemClock, type Clock } from '../../kernel/clock.js';
import { admission, ofSender, ofHost, type PostEnd } from './host-breaker.js';
import { enterBreaker, Host, Limiter, SenderLimiter, type TenantAtHost, type SenderAtHost } from './host-posts.js';

/** Most posts at the same time. */
export interface PostLimits {
  readonly perHost: number;
  readonly perOrg: number;
  /** Limit for one sender of an org. */
  readonly perSender: number;
}

/** The receiver and the sender of a post. */
export interface PostRequest {
  /** An origin. */
  readonly host: string;
  readonly org: string;
  /** Key of the owner of the task, with its org. */
  readonly sender: string;
  /** Key of the configuration: it has one place in the queue. */
  readonly key: string;
}

/** Permission to post; call `leave` when the post is over. */
export interface Permit {
  readonly kind: 'permitted';
  leave(end: PostEnd): void;
}

/** The post may not be sent now. `full`: a limit is reached; `down`: the host accepts nothing at present. */
export interface Deferral {
  readonly kind: 'deferred';
  readonly why: 'full' | 'down';
  /** Milliseconds until its row is due, unless it is called before. */
  readonly inMs: number;
}

/** Milliseconds that a post waits for a place before it is deferred. A host with posts longer than this is slow. */
const briefWaitMs = 100;
/** Milliseconds until the row of a post that waits for a place is due, unless it is called before. */
const fullMs = 10_000;
/** Milliseconds that a called post, or one with a due row, keeps its turn before others may pass it. */
const turnMs = 2_000;
/** Milliseconds between the due times of an org's rows for one host. Bounds the attempts at a dead host. */
const slotMs = 20;
const maxQueued = 5_000;
/** A sender with this many queued posts can fill its places until a sweep brings more. */
const enoughQueued = 200;
const maxHosts = 10_000;

interface Queued {
  readonly post: PostRequest;
  /** When its row is due; in the past after it was called. */
  until: number;
}

interface Waiter extends Queued {
  readonly timer: NodeJS.Timeout;
  readonly answer: (answer: Permit | Deferral) => void;
}

interface Caller extends Queued {
  readonly call: () => void;
}

/** A queued post that may be called. */
interface Candidate {
  readonly caller: Caller;
  readonly tenant: TenantAtHost;
}

interface Limiters {
  readonly host: Host;
  readonly tenant: TenantAtHost;
  readonly senderAtHost: SenderAtHost;
  readonly org: Limiter;
  readonly sender: Limiter;
}

/**
 * Decides which posts may be sent now. It limits the posts to a host, of an org, and of a sender; a host that is down
 * gets only one probe at a time (abuse case 28).
 * A host that answers neither of two orgs is down for all; one that refuses a sender, or does not answer it, is down
 * for that sender. Free places and probes go to orgs in turn, and within an org to the sender with the fewest posts
 * under way, so that no org or sender blocks a shared host for others (abuse case 36).
 * The state is local to this process and may be lost: a deferred post has a row that becomes due without it.
 */
export class DeliveryAdmission {
  private readonly hosts = new Map<string, Host>();
  private readonly orgs = new Map<string, Limiter>();
  private readonly senders = new Map<string, Limiter>();
  /** Posts that wait briefly and keep their worker's slot; `queue` has the deferred posts that will be called. */
  private readonly waitingBriefly = new Set<Waiter>();
  private readonly queue = new Map<string, Caller>();
  private admissions = 0;

  constructor(
    private readonly limits: PostLimits,
    private readonly clock: Pick<Clock, 'elapsed'> = systemClock,
  ) {}

  /** Number of open breakers, of hosts and of single senders at hosts. */
  get openBreakers(): number {
    let open = 0;
    for (const host of this.hosts.values()) open += host.openBreakers;
    return open;
  }

  get waiting(): number {
    const now = this.clock.elapsed();
    this.dropExpired(now);
    return this.waitingBriefly.size + [...this.queue.values()].filter(({ until }) => until > now).length;
  }

  /** Senders with all places taken and many posts queued: more of their deliveries need not be claimed now. */
  get saturated(): string[] {
    const full = [...this.senders].filter(([, limiter]) => limiter.isFull).map(([sender]) => sender);
    if (full.length === 0) return [];
    const now = this.clock.elapsed();
    const queuedOf = new Map<string, number>();
    for (const { post, until } of this.queue.values())
      if (until > now) queuedOf.set(post.sender, (queuedOf.get(post.sender) ?? 0) + 1);
    return full.filter((sender) => (queuedOf.get(sender) ?? 0) >= enoughQueued);
  }

  /** Permits or defers a post. Waits for a place only briefly, so that slow hosts do not occupy workers. */
  async enter(post: PostRequest): Promise<Permit | Deferral> {
    this.queue.delete(post.key);
    const places = this.limitersOf(post);
    const why = this.refusal(post, places);
    if (!why) return this.permit(post, places);
    const limiters = [places.host, places.senderAtHost, places.org, places.sender];
    const isBriefWait = why === 'full' && limiters.every(({ recentlyFast }) => recentlyFast);
    return isBriefWait ? this.waitBriefly(post, limiters) : this.deferPost(post, why);
  }

  /**
   * Queues a deferred post, once for each key, until a post that ends calls it; or calls it at once if there is a
   * place.
   */
  queueDeferred(post: PostRequest, { inMs }: Deferral, call: () => void): void {
    this.queue.delete(post.key);
    if (!this.refusal(post, this.limitersOf(post))) return call();
    if (this.queue.size < maxQueued) this.queue.set(post.key, { post, until: this.clock.elapsed() + inMs, call });
  }

  /** Undefined when the post may be sent now. */
  private refusal(
    post: PostRequest,
    { host, tenant, senderAtHost, org, sender }: Limiters,
  ): Deferral['why'] | undefined {
    const now = this.clock.elapsed();
    const admitted = admission(host.breaker, now);
    if (admitted === 'nothing' || admission(senderAtHost.breaker, now) === 'nothing') return 'down';
    if ([host, senderAtHost, org, sender].some(({ isFull }) => isFull)) return 'full';
    const free = admitted === 'probe' ? 1 : host.max - host.inside;
    if (this.othersBefore(post, tenant, now) < free) return undefined;
    return admitted === 'probe' ? 'down' : 'full';
  }

  /** Number of other orgs, and senders of this org, that wait for the host, may post, and have their turn before. */
  private othersBefore({ host: name, org, sender }: PostRequest, tenant: TenantAtHost, now: number): number {
    const others = new Set<string>();
    for (const { post, until } of [...this.waitingBriefly, ...this.queue.values()]) {
      const isOwn = post.org === org;
      const who = isOwn ? post.sender : post.org;
      if (post.host !== name || post.sender === sender || others.has(who) || now >= until + turnMs) continue;
      const places = this.limitersOf(post);
      if ([places.senderAtHost, places.org, places.sender].some(({ isFull }) => isFull)) continue;
      if (admission(places.senderAtHost.breaker, now) === 'nothing') continue;
      if (isOwn ? tenant.insideOf(post.sender) < tenant.insideOf(sender) : places.tenant.isBefore(tenant))
        others.add(who);
    }
    return others.size;
  }

  private permit(post: PostRequest, { host, tenant, senderAtHost, org, sender }: Limiters): Permit {
    const begun = this.clock.elapsed();
    const places = [host, tenant, senderAtHost, org, sender];
    for (const place of places) place.inside++;
    tenant.senders.set(post.sender, senderAtHost);
    this.senders.set(post.sender, sender);
    tenant.last = ++this.admissions;
    const endAtHost = enterBreaker(host);
    const endAtSender = enterBreaker(senderAtHost);
    const leave = (end: PostEnd): void => {
      const now = this.clock.elapsed();
      for (const place of places) place.inside--;
      for (const limiter of [host, senderAtHost, org, sender]) limiter.recentlyFast = now - begun < briefWaitMs;
      if (endAtSender(ofSender(end), now)) tenant.slot = 0;
      if (endAtHost(ofHost(end, host.noteEnd(post.org, end)), now)) host.reopen();
      if (senderAtHost.isForgettable) tenant.senders.delete(post.sender);
      this.answerWaiters();
      this.callNext(post, host);
      if (host.isRemovable(now)) this.hosts.delete(post.host);
      if (org.inside === 0) this.orgs.delete(post.org);
      if (sender.inside === 0) this.senders.delete(post.sender);
    };
    return { kind: 'permitted', leave };
  }

  private waitBriefly(post: PostRequest, limiters: readonly Limiter[]): Promise<Permit | Deferral> {
    return new Promise((resolve) => {
      const giveUp = (): void => {
        for (const limiter of limiters) if (limiter.isFull) limiter.recentlyFast = false;
        this.waitingBriefly.delete(waiter);
        resolve(this.deferPost(post, 'full'));
      };
      const until = this.clock.elapsed() + briefWaitMs;
      const waiter: Waiter = { post, until, answer: resolve, timer: setTimeout(giveUp, briefWaitMs) };
      this.waitingBriefly.add(waiter);
    });
  }

  /** An admission may give the turn to a post that waited earlier, so all waiting posts are checked again. */
  private answerWaiters(): void {
    for (const waiter of this.waitingBriefly) {
      const places = this.limitersOf(waiter.post);
      const why = this.refusal(waiter.post, places);
      if (why === 'full') continue;
      clearTimeout(waiter.timer);
      this.waitingBriefly.delete(waiter);
      waiter.answer(why ? this.deferPost(waiter.post, why) : this.permit(waiter.post, places));
      return this.answerWaiters();
    }
  }

  /**
   * Calls as many queued posts as there are places, for orgs and their senders in turn. A called post may find its
   * place taken, and asks again.
   */
  private callNext({ host: name, org }: PostRequest, host: Host): void {
    const now = this.clock.elapsed();
    this.dropExpired(now);
    const called = new Map<TenantAtHost, string[]>();
    const insideWith = ({ tenant, caller: { post } }: Candidate): number =>
      tenant.insideOf(post.sender) + (called.get(tenant) ?? []).filter((sender) => sender === post.sender).length;
    const isBefore = (one: Candidate, other: Candidate): boolean =>
      one.tenant === other.tenant
        ? insideWith(one) < insideWith(other)
        : one.tenant.isBefore(other.tenant, called.get(one.tenant)?.length, called.get(other.tenant)?.length);
    for (let free = host.max - host.inside; free > 0; free--) {
      let next: Candidate | undefined;
      const seen = new Set<string>();
      for (const caller of this.queue.values()) {
        const { post, until } = caller;
        if (until <= now || (post.host !== name && post.org !== org)) continue;
        // The first queued post of a sender at a host represents the later ones.
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

  private dropExpired(now: number): void {
    for (const [key, { until }] of this.queue) if (until + turnMs <= now) this.queue.delete(key);
  }

  private deferPost(post: PostRequest, why: Deferral['why']): Deferral {
    const { host, tenant, senderAtHost } = this.limitersOf(post);
    const now = this.clock.elapsed();
    const open = [host, senderAtHost].flatMap(({ breaker }) => (breaker.kind === 'open' ? [breaker.until] : []));
    // A breaker that permits a probe reserves it for another org first.
    const soonest = why === 'full' || open.length === 0 ? now + fullMs : Math.max(now + turnMs, ...open);
    tenant.slot = Math.max(soonest, tenant.slot + slotMs);
    return { kind: 'deferred', why, inMs: Math.ceil(tenant.slot - now) };
  }

  private limitersOf({ host: name, org: id, sender: owner }: PostRequest): Limiters {
    const now = this.clock.elapsed();
    let host = this.hosts.get(name);
    if (!host) {
      if (this.hosts.size >= maxHosts) this.dropOldest();
      this.hosts.set(name, (host = new Host(this.limits.perHost, now)));
    }
    let org = this.orgs.get(id);
    if (!org) this.orgs.set(id, (org = new Limiter(this.limits.perOrg)));
    // It and the sender at the host are stored only after an admission, because there are more senders than orgs.
    const sender = this.senders.get(owner) ?? new SenderLimiter(this.limits.perSender, org);
    const tenant = host.tenant(id);
    const senderAtHost = host.senderOf(tenant, owner, now);
    return { host, tenant, senderAtHost, org, sender };
  }

  private dropOldest(): void {
    for (const [name, { inside }] of this.hosts) if (inside === 0) return void this.hosts.delete(name);
  }
}
