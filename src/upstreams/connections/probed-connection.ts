import type { JsonObject } from '../../kernel/json.js';
import type { SlotHolder, Slots } from '../programs/program-slots.js';
import type { UpstreamConnection } from './upstream-connection.js';
import type { ConnectionOptions } from './upstream-connection.types.js';

/** Receives the notifications of the server of an adopted connection. */
export interface Adopter {
  readonly changed: () => void;
  readonly heard: (method: string, params: JsonObject) => void;
}

/**
 * Connection to the program of a server that has no row yet. It takes no slot and passes on no notifications until it
 * is adopted. So the program that was started to read the offer is also the one that is called later.
 */
export class ProbedConnection {
  readonly connection: UpstreamConnection;
  private readonly slot: DeferredSlot;
  private adopter?: Adopter;
  private hasChanged = false;

  /** @param make opens the connection with these hooks in place of the hooks of a row. */
  constructor(
    slots: Slots,
    make: (hooks: Pick<ConnectionOptions, 'slots' | 'changed' | 'heard'>) => UpstreamConnection,
  ) {
    this.slot = new DeferredSlot(slots);
    this.connection = make({
      slots: this.slot,
      changed: () => (this.adopter ? this.adopter.changed() : (this.hasChanged = true)),
      heard: (...message) => this.adopter?.heard(...message),
    });
  }

  /**
   * Takes a slot; an idle program may end for it. Returns false when there is none, or when the program ended
   * meanwhile: then the caller closes the connection.
   */
  claim(): Promise<boolean> {
    return this.slot.claim();
  }

  adoptedBy(adopter: Adopter): void {
    this.adopter = adopter;
    if (this.hasChanged) adopter.changed();
  }
}

/** Lets the connection start at once without a slot; `claim` takes the real slot later. */
class DeferredSlot implements Slots {
  private holder?: SlotHolder;
  private giveBack?: () => void;
  private isClaimed = false;

  constructor(private readonly slots: Slots) {}

  takeSlot(holder: SlotHolder, wait: Parameters<Slots['takeSlot']>[1]): Promise<() => void> {
    if (this.isClaimed) return this.slots.takeSlot(holder, wait);
    this.holder = holder;
    return Promise.resolve(() => this.free());
  }

  async claim(): Promise<boolean> {
    if (!this.holder) return false;
    const now = { signal: AbortSignal.abort(), mayWait: true };
    const giveBack = await this.slots.takeSlot(this.holder, now).catch(() => undefined);
    if (giveBack && !this.holder) giveBack();
    if (!giveBack || !this.holder) return false;
    this.isClaimed = true;
    this.giveBack = giveBack;
    return true;
  }

  enter(...call: Parameters<Slots['enter']>): Promise<() => void> {
    return this.slots.enter(...call);
  }

  stirred(): void {
    this.slots.stirred();
  }

  full(): ReturnType<Slots['full']> {
    return this.slots.full();
  }

  private free(): void {
    this.holder = undefined;
    this.giveBack?.();
    this.giveBack = undefined;
  }
}
