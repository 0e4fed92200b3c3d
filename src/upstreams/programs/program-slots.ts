import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { ProgramShares, type TurnWait } from './program-shares.js';

/** A connection to a program. */
export interface SlotHolder {
  /** When its last use ended, as `systemClock.elapsed` counts; undefined while it is in use, by a subscription too. */
  readonly idleSince: number | undefined;
  /** The same of one that subscriptions alone use. */
  readonly watchingSince: number | undefined;
  /** Ends the program until it is needed again. */
  release(): Promise<void>;
}

/** For how many programs of one kind an org has room. */
export interface Slots {
  /**
   * Waits in turn for a slot; the idlest program of the others ends for it, or else one that subscriptions alone use. Resolves with what
   * gives it back. Rejects with `unavailable` when none is free and nobody can wait, or when the signal comes.
   */
  take(holder: SlotHolder, wait: { readonly signal: AbortSignal; readonly mayWait: boolean }): Promise<() => void>;
  /** Counts a call of a caller at a program, as ProgramShares.enter does. */
  enter(caller: string, program: object, wait: TurnWait): Promise<() => void>;
  /** Tells that a holder may be idle by now. */
  stirred(): void;
  /** What is told when there was no slot in time. */
  full(): RialtoError;
}

const maxWaiting = 1_000;
/** How often holders are looked at while somebody waits, beside each time that one says that it is idle. */
const lookMs = 250;
/** What one caller may use at once of the programs of its org. */
const shareOfCaller = 0.8;
const hint = 'try again later; RIALTO_STDIO_PROGRAMS says how many there may be';
const data = { retryAfterSeconds: 5 };

interface Slot {
  readonly holder: SlotHolder;
}

/** The slots of one org and kind. */
export class SlotGroup implements Slots {
  private readonly held = new Set<Slot>();
  private readonly waiting: { readonly grant: () => void }[] = [];
  private looks?: NodeJS.Timeout;
  private readonly shares: ProgramShares;

  constructor(
    private readonly most: number,
    private readonly onEmpty: () => void = () => undefined,
  ) {
    const full = (mostOfCaller: number): RialtoError =>
      new RialtoError('unavailable', {
        message: `one caller may use ${mostOfCaller} of the ${most} programs that MCP servers of this org may run at once, and this one does`,
        hint,
        data,
      });
    this.shares = new ProgramShares(Math.max(1, Math.floor(most * shareOfCaller)), full);
  }

  take(holder: SlotHolder, { signal, mayWait }: Parameters<Slots['take']>[1]): Promise<() => void> {
    const isFree = (): boolean => (mayWait ? this.hasRoom() : this.held.size < this.most);
    if (this.waiting.length === 0 && isFree()) return Promise.resolve(this.given(holder));
    if (!mayWait || signal.aborted || this.waiting.length >= maxWaiting) return Promise.reject(this.full());
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        this.settle();
        reject(this.full());
      };
      const waiter = {
        grant: (): void => {
          signal.removeEventListener('abort', leave);
          resolve(this.given(holder));
        },
      };
      this.waiting.push(waiter);
      signal.addEventListener('abort', leave, { once: true });
      this.looks ??= setInterval(() => this.stirred(), lookMs).unref();
    });
  }

  async enter(...call: Parameters<Slots['enter']>): Promise<() => void> {
    const leave = await this.shares.enter(...call);
    return () => {
      leave();
      this.settle();
    };
  }

  stirred(): void {
    while (this.waiting.length > 0 && this.hasRoom()) this.waiting.shift()!.grant();
    this.settle();
  }

  full(): RialtoError {
    return new RialtoError('unavailable', {
      message: `all ${this.most} programs that MCP servers of this org may run at once are in use`,
      hint,
      data,
    });
  }

  private given(holder: SlotHolder): () => void {
    const slot: Slot = { holder };
    this.held.add(slot);
    return () => {
      if (this.held.delete(slot)) this.stirred();
    };
  }

  /** Ends the idlest program where there is no room otherwise, or the one that was only listened to for longest. */
  private hasRoom(): boolean {
    if (this.held.size < this.most) return true;
    const slot = this.longest(({ idleSince }) => idleSince) ?? this.longest(({ watchingSince }) => watchingSince);
    if (!slot) return false;
    this.held.delete(slot);
    void slot.holder.release();
    return true;
  }

  /** Of those that are in this state, the one that has been for longest. Of equals the first. */
  private longest(since: (holder: SlotHolder) => number | undefined): Slot | undefined {
    // Compares moments and not durations, since the clock moves between two comparisons.
    const moments = [...this.held].map((slot) => ({ slot, at: since(slot.holder) ?? Infinity }));
    return moments.filter(({ at }) => at < Infinity).toSorted((one, other) => one.at - other.at)[0]?.slot;
  }

  private settle(): void {
    if (this.waiting.length > 0) return;
    clearInterval(this.looks);
    this.looks = undefined;
    if (this.held.size === 0 && this.shares.isEmpty) this.onEmpty();
  }
}

/** Keeps each org to a number of programs in one process (reliability-security 4.11): those that all callers share, and those of single clients. */
@Injectable()
export class ProgramSlots {
  private readonly groups = new Map<string, SlotGroup>();

  constructor(@Inject(SETTINGS) private readonly settings: Pick<Settings, 'RIALTO_STDIO_PROGRAMS'>) {}

  /** @param kind counted apart, so that a client that has a program of its own never waits for another that waits for it. */
  of(org: string, kind: 'shared' | 'own'): Slots {
    const group = (): SlotGroup => this.groupOf(`${kind} ${org}`);
    return {
      take: (holder, wait) => group().take(holder, wait),
      enter: (...call) => group().enter(...call),
      stirred: () => group().stirred(),
      full: () => group().full(),
    };
  }

  private groupOf(key: string): SlotGroup {
    const known = this.groups.get(key);
    if (known) return known;
    const made = new SlotGroup(this.settings.RIALTO_STDIO_PROGRAMS, () => {
      if (this.groups.get(key) === made) this.groups.delete(key);
    });
    this.groups.set(key, made);
    return made;
  }
}
