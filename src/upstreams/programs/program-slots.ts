import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { ProgramShares, type TurnWait } from './program-shares.js';

/** Connection to a program. */
export interface SlotHolder {
  /**
   * When its last use ended, as `systemClock.elapsed` counts; undefined while it is in use. A subscription is a use.
   */
  readonly idleSince: number | undefined;
  /** When its last use other than a subscription ended; undefined unless only subscriptions use it. */
  readonly watchingSince: number | undefined;
  /** Ends the program until it is needed again. */
  release(): Promise<void>;
}

/** Slots of an org for one kind of program. */
export interface Slots {
  /**
   * Waits in turn for a slot; the returned promise resolves with a function that gives it back. To make room, the
   * program that is idle for longest ends, or else one that only subscriptions use. Rejects with `unavailable` when no
   * slot is free and `mayWait` is false, or when the signal aborts.
   */
  takeSlot(holder: SlotHolder, wait: { readonly signal: AbortSignal; readonly mayWait: boolean }): Promise<() => void>;
  /** Counts a call of a caller at a program, as ProgramShares.enter does. */
  enter(caller: string, program: object, wait: TurnWait): Promise<() => void>;
  /** Notifies the group that a holder may be idle now. */
  stirred(): void;
  /** Creates the error for a connection that got no slot in time. */
  full(): RialtoError;
}

const maxWaiting = 1_000;
/** How often the group checks for idle holders while a connection waits, in addition to each `stirred` notification. */
const pollMs = 250;
/** Share of the programs of its org that one caller may use at once. */
const shareOfCaller = 0.8;
const hint = 'try again later; RIALTO_STDIO_PROGRAMS sets the limit';
const data = { retryAfterSeconds: 5 };

interface Slot {
  readonly holder: SlotHolder;
}

/** Slots of one org and kind. */
export class SlotGroup implements Slots {
  private readonly occupied = new Set<Slot>();
  private readonly waiting: { readonly grant: () => void }[] = [];
  private pollTimer?: NodeJS.Timeout;
  private readonly shares: ProgramShares;

  constructor(
    private readonly most: number,
    private readonly onEmpty: () => void = () => undefined,
  ) {
    const full = (maxPerCaller: number): RialtoError =>
      new RialtoError('unavailable', {
        message:
          `this caller uses ${maxPerCaller} of the ${most} programs that MCP servers of this org may run at once; ` +
          'one caller may use no more',
        hint,
        data,
      });
    this.shares = new ProgramShares(Math.max(1, Math.floor(most * shareOfCaller)), full);
  }

  takeSlot(holder: SlotHolder, { signal, mayWait }: Parameters<Slots['takeSlot']>[1]): Promise<() => void> {
    const isFree = (): boolean => (mayWait ? this.hasRoom() : this.occupied.size < this.most);
    if (this.waiting.length === 0 && isFree()) return Promise.resolve(this.occupy(holder));
    if (!mayWait || signal.aborted || this.waiting.length >= maxWaiting) return Promise.reject(this.full());
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.waiting.splice(this.waiting.indexOf(waiter), 1);
        this.stopWhenUnused();
        reject(this.full());
      };
      const waiter = {
        grant: (): void => {
          signal.removeEventListener('abort', leave);
          resolve(this.occupy(holder));
        },
      };
      this.waiting.push(waiter);
      signal.addEventListener('abort', leave, { once: true });
      this.pollTimer ??= setInterval(() => this.stirred(), pollMs).unref();
    });
  }

  async enter(...call: Parameters<Slots['enter']>): Promise<() => void> {
    const leave = await this.shares.enter(...call);
    return () => {
      leave();
      this.stopWhenUnused();
    };
  }

  stirred(): void {
    while (this.waiting.length > 0 && this.hasRoom()) this.waiting.shift()!.grant();
    this.stopWhenUnused();
  }

  full(): RialtoError {
    return new RialtoError('unavailable', {
      message: `all ${this.most} programs that MCP servers of this org may run at once are in use`,
      hint,
      data,
    });
  }

  private occupy(holder: SlotHolder): () => void {
    const slot: Slot = { holder };
    this.occupied.add(slot);
    return () => {
      if (this.occupied.delete(slot)) this.stirred();
    };
  }

  /**
   * Returns whether a slot is free. Otherwise ends the program that is idle for longest, or the one that only
   * subscriptions used for longest.
   */
  private hasRoom(): boolean {
    if (this.occupied.size < this.most) return true;
    const slot = this.longest(({ idleSince }) => idleSince) ?? this.longest(({ watchingSince }) => watchingSince);
    if (!slot) return false;
    this.occupied.delete(slot);
    void slot.holder.release();
    return true;
  }

  /** Returns the slot that has been in the state for longest; the first one of equals. */
  private longest(since: (holder: SlotHolder) => number | undefined): Slot | undefined {
    // Compares points in time and not durations, because the clock moves between two comparisons.
    const moments = [...this.occupied].map((slot) => ({ slot, at: since(slot.holder) ?? Infinity }));
    return moments.filter(({ at }) => at < Infinity).toSorted((one, other) => one.at - other.at)[0]?.slot;
  }

  private stopWhenUnused(): void {
    if (this.waiting.length > 0) return;
    clearInterval(this.pollTimer);
    this.pollTimer = undefined;
    if (this.occupied.size === 0 && this.shares.isEmpty) this.onEmpty();
  }
}

/**
 * Limits the number of programs of each org in one process (reliability-security 4.11). Shared programs and programs of
 * single clients are counted separately.
 */
@Injectable()
export class ProgramSlots {
  private readonly groups = new Map<string, SlotGroup>();

  constructor(@Inject(SETTINGS) private readonly settings: Pick<Settings, 'RIALTO_STDIO_PROGRAMS'>) {}

  /**
   * Returns the slots of an org.
   * @param kind counted separately, so that a client with its own program never waits for a program that waits for that
   * client.
   */
  slotsOf(org: string, kind: 'shared' | 'own'): Slots {
    const group = (): SlotGroup => this.groupOf(`${kind} ${org}`);
    return {
      takeSlot: (holder, wait) => group().takeSlot(holder, wait),
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
