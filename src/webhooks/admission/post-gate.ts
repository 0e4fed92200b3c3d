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
export interface Visit {
  /** An origin. */
  readonly host: string;
  readonly org: string;
  /** Names the owner of the task, and its org. */
  readonly sender: string;
  /** Which of the visitors of the org: they stand in line once. */
  readonly key: string;
}

/** May post; `leave` when the post is over. */
export interface Pass {
  leave(end: PostEnd): void;
}

/** May not post now. `full`: too many do; `down`: the host takes nothing at present. */
export interface PutOff {
  readonly why: 'full' | 'down';
  /** Until its row is looked at again when nobody calls it before. */
  readonly inMs: number;
}

/** A post that is over within this time is worth waiting for. */
const patienceMs = 100;
/** What waits for room, unless it is called. */
const fullMs = 10_000;
/** For so long somebody who was called, or whose row is due, is expected, and whose turn it is not stays behind. */
const expectedMs = 2_000;
/** Rows of one org come due at this distance, however many wait for a host: a look at each of them is all that a dead host costs. */
const slotMs = 20;
const maxLine = 5_000;
/** A sender with so many in line has enough to fill its places until a sweep brings more. */
const enoughInLine = 200;
const maxHosts = 10_000;

class Room {
  inside = 0;
  /** Its last post was short, and nobody has waited in vain since. */
  isBrisk = true;

  constructor(readonly most: number) {}

  get isFull(): boolean {
    return this.inside >= this.most;
  }
}

/** A host for one org. */
class Guest {
  inside = 0;
  private readonly senders = new Map<string, number>();
  /** Which of all admissions was its last. */
  last = 0;
  /** The last moment that was given to somebody who has to come again. */
  slot = 0;

  constructor(public breaker: Breaker) {}

  isUnremarkable(now: number): boolean {
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
  isBefore(other: Guest, more = 0, otherMore = 0): boolean {
    const difference = this.inside + more - other.inside - otherMore;
    return difference < 0 || (difference === 0 && this.last < other.last);
  }
}

class Host extends Room {
  private readonly guests = new Map<string, Guest>();

  constructor(
    most: number,
    public breaker: Breaker,
  ) {
    super(most);
  }

  get openBreakers(): number {
    return [this, ...this.guests.values()].filter(({ breaker }) => breaker.kind !== 'closed').length;
  }

  guest(org: string, now: number): Guest {
    let guest = this.guests.get(org);
    if (!guest) this.guests.set(org, (guest = new Guest(closedBreaker(now))));
    return guest;
  }

  isUnremarkable(now: number): boolean {
    return (
      this.inside === 0 &&
      isSpotless(this.breaker) &&
      [...this.guests.values()].every((guest) => guest.isUnremarkable(now))
    );
  }

  /** It is back: whoever waits may come at once. */
  forgetSlots(): void {
    for (const guest of this.guests.values()) guest.slot = 0;
  }
}

interface InLine {
  readonly visit: Visit;
  /** When it comes by itself; past once it was called. */
  until: number;
}

interface Waiter extends InLine {
  readonly timer: NodeJS.Timeout;
  readonly answer: (answer: Pass | PutOff) => void;
}

interface Caller extends InLine {
  readonly call: () => void;
}

/** Who may be called. */
interface Next {
  readonly caller: Caller;
  readonly guest: Guest;
}

interface Places {
  readonly host: Host;
  readonly guest: Guest;
  readonly org: Room;
  readonly sender: Room;
}

/**
 * Who may post now: so many to a host, so many of an org and of one sender of it, and nothing to a host that is down but one post at a
 * time that tries it (abuse case 28). A host that does not answer is down for all, one that refuses for the org it refuses; free places and tries go to
 * orgs in turn, and in an org to the sender with the fewest posts under way, so that none keeps others from a host that they share (abuse
 * case 36). It knows this process only and may forget everything: whoever is put off has a row that comes due by itself.
 */
export class PostGate {
  private readonly hosts = new Map<string, Host>();
  private readonly orgs = new Map<string, Room>();
  private readonly senders = new Map<string, Room>();
  /** Who stands at the door for a moment, with a slot of its worker, and who went away to be called. */
  private readonly brief = new Set<Waiter>();
  private readonly line = new Map<string, Caller>();
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
    return this.brief.size + [...this.line.values()].filter(({ until }) => until > now).length;
  }

  /** Senders that have all their places and many in line: more of theirs needs no look now. */
  get saturated(): string[] {
    const full = [...this.senders].filter(([, room]) => room.isFull).map(([sender]) => sender);
    if (full.length === 0) return [];
    const now = this.clock.elapsed();
    const inLine = new Map<string, number>();
    for (const { visit, until } of this.line.values())
      if (until > now) inLine.set(visit.sender, (inLine.get(visit.sender) ?? 0) + 1);
    return full.filter((sender) => (inLine.get(sender) ?? 0) >= enoughInLine);
  }

  /** Waits for room where that takes a moment only; a worker has better things to do than to wait for who is slow. */
  async enter(visit: Visit): Promise<Pass | PutOff> {
    this.line.delete(visit.key);
    const places = this.placesOf(visit);
    const why = this.refusal(visit, places);
    if (!why) return this.admit(visit, places);
    const rooms = [places.host, places.org, places.sender];
    const isWorthIt = why === 'full' && rooms.every(({ isBrisk }) => isBrisk);
    return isWorthIt ? this.standBy(visit, rooms) : this.putOff(visit, why);
  }

  /** Puts somebody in line who was put off; who finishes calls the next. Only once, and at once when there is room by now. */
  await(visit: Visit, { inMs }: PutOff, call: () => void): void {
    this.line.delete(visit.key);
    if (!this.refusal(visit, this.placesOf(visit))) return call();
    if (this.line.size < maxLine) this.line.set(visit.key, { visit, until: this.clock.elapsed() + inMs, call });
  }

  /** Undefined when it may post now. */
  private refusal(visit: Visit, { host, guest, org, sender }: Places): PutOff['why'] | undefined {
    const now = this.clock.elapsed();
    const admitted = admission(host.breaker, now);
    if (admitted === 'nothing' || admission(guest.breaker, now) === 'nothing') return 'down';
    if (host.isFull || org.isFull || sender.isFull) return 'full';
    const free = admitted === 'probe' ? 1 : host.most - host.inside;
    if (this.othersBefore(visit, guest, now) < free) return undefined;
    return admitted === 'probe' ? 'down' : 'full';
  }

  /** Orgs, and senders of its own org, that are expected at the host, may post, and have their turn before this one. */
  private othersBefore({ host: name, org, sender }: Visit, guest: Guest, now: number): number {
    const others = new Set<string>();
    for (const { visit, until } of [...this.brief, ...this.line.values()]) {
      const isOwn = visit.org === org;
      const who = isOwn ? visit.sender : visit.org;
      if (visit.host !== name || visit.sender === sender || others.has(who) || now >= until + expectedMs) continue;
      const places = this.placesOf(visit);
      if (places.org.isFull || places.sender.isFull || admission(places.guest.breaker, now) === 'nothing') continue;
      if (isOwn ? guest.insideOf(visit.sender) < guest.insideOf(sender) : places.guest.isBefore(guest)) others.add(who);
    }
    return others.size;
  }

  private admit(visit: Visit, { host, guest, org, sender }: Places): Pass {
    const begun = this.clock.elapsed();
    for (const place of [host, guest, org, sender]) place.inside++;
    guest.count(visit.sender, 1);
    this.senders.set(visit.sender, sender);
    guest.last = ++this.admissions;
    const endOfHost = enterBreaker(host);
    const endOfGuest = enterBreaker(guest);
    const leave = (end: PostEnd): void => {
      const now = this.clock.elapsed();
      for (const place of [host, guest, org, sender]) place.inside--;
      guest.count(visit.sender, -1);
      for (const room of [host, org, sender]) room.isBrisk = now - begun < patienceMs;
      if (endOfHost(ofHost(end), now)) host.forgetSlots();
      if (endOfGuest(ofGuest(end), now)) guest.slot = 0;
      this.answerBrief();
      this.callNext(visit, host);
      if (host.isUnremarkable(now)) this.hosts.delete(visit.host);
      if (org.inside === 0) this.orgs.delete(visit.org);
      if (sender.inside === 0) this.senders.delete(visit.sender);
    };
    return { leave };
  }

  private standBy(visit: Visit, rooms: readonly Room[]): Promise<Pass | PutOff> {
    return new Promise((resolve) => {
      const giveUp = (): void => {
        for (const room of rooms) if (room.isFull) room.isBrisk = false;
        this.brief.delete(waiter);
        resolve(this.putOff(visit, 'full'));
      };
      const until = this.clock.elapsed() + patienceMs;
      const waiter: Waiter = { visit, until, answer: resolve, timer: setTimeout(giveUp, patienceMs) };
      this.brief.add(waiter);
    });
  }

  /** Whoever is let in may make way for somebody who stood before it, so all are asked again. */
  private answerBrief(): void {
    for (const waiter of this.brief) {
      const places = this.placesOf(waiter.visit);
      const why = this.refusal(waiter.visit, places);
      if (why === 'full') continue;
      clearTimeout(waiter.timer);
      this.brief.delete(waiter);
      waiter.answer(why ? this.putOff(waiter.visit, why) : this.admit(waiter.visit, places));
      return this.answerBrief();
    }
  }

  /** As many as there is room for, orgs and their senders in turn; who is called may find it taken, and comes again. */
  private callNext({ host: name, org }: Visit, host: Host): void {
    const now = this.clock.elapsed();
    this.forgetLate(now);
    const called = new Map<Guest, string[]>();
    const insideWith = ({ guest, caller: { visit } }: Next): number =>
      guest.insideOf(visit.sender) + (called.get(guest) ?? []).filter((sender) => sender === visit.sender).length;
    const isBefore = (one: Next, other: Next): boolean =>
      one.guest === other.guest
        ? insideWith(one) < insideWith(other)
        : one.guest.isBefore(other.guest, called.get(one.guest)?.length, called.get(other.guest)?.length);
    for (let free = host.most - host.inside; free > 0; free--) {
      let next: Next | undefined;
      const seen = new Set<string>();
      for (const caller of this.line.values()) {
        const { visit, until } = caller;
        if (until <= now || (visit.host !== name && visit.org !== org)) continue;
        // Of a sender the first one in line for a host stands for all behind it.
        const who = `${visit.host} ${visit.sender}`;
        if (seen.has(who)) continue;
        seen.add(who);
        const places = this.placesOf(visit);
        const one = { caller, guest: places.guest };
        if ((!next || isBefore(one, next)) && !this.refusal(visit, places)) next = one;
      }
      if (!next) return;
      called.set(next.guest, [...(called.get(next.guest) ?? []), next.caller.visit.sender]);
      next.caller.until = now;
      next.caller.call();
    }
  }

  private forgetLate(now: number): void {
    for (const [key, { until }] of this.line) if (until + expectedMs <= now) this.line.delete(key);
  }

  private putOff(visit: Visit, why: PutOff['why']): PutOff {
    const { host, guest } = this.placesOf(visit);
    const now = this.clock.elapsed();
    const open = [host, guest].flatMap(({ breaker }) => (breaker.kind === 'open' ? [breaker.until] : []));
    // An open one that lets somebody try lets another org try first.
    const soonest = why === 'full' || open.length === 0 ? now + fullMs : Math.max(now + expectedMs, ...open);
    guest.slot = Math.max(soonest, guest.slot + slotMs);
    return { why, inMs: Math.ceil(guest.slot - now) };
  }

  private placesOf({ host: name, org: id, sender: owner }: Visit): Places {
    const now = this.clock.elapsed();
    let host = this.hosts.get(name);
    if (!host) {
      if (this.hosts.size >= maxHosts) this.forgetOldest();
      this.hosts.set(name, (host = new Host(this.limits.perHost, closedBreaker(now))));
    }
    let org = this.orgs.get(id);
    if (!org) this.orgs.set(id, (org = new Room(this.limits.perOrg)));
    // Kept from its first post on: there are more senders than orgs.
    const sender = this.senders.get(owner) ?? new Room(this.limits.perSender);
    return { host, guest: host.guest(id, now), org, sender };
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
