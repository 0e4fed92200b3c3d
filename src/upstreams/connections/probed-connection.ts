import type { JsonObject } from '../../kernel/json.js';
import type { SlotHolder, Slots } from '../programs/program-slots.js';
import type { UpstreamConnection } from './upstream-connection.js';
import type { ConnectionOptions } from './upstream-connection.types.js';

/** Receives what the server of an adopted connection tells. */
export interface Adopter {
  readonly changed: () => void;
  readonly heard: (method: string, params: JsonObject) => void;
}

/**
 * A connection to the program of a server that has no row yet. It takes no slot and tells nobody anything until it is adopted, so that the
 * program which was started to read the offer is the one that is called.
 */
export class ProbedConnection {
  readonly connection: UpstreamConnection;
  private readonly slot: ClaimedLater;
  private adopter?: Adopter;
  private hasChanged = false;

  /** @param make opens the connection with these hooks in place of those of a row. */
  constructor(
    slots: Slots,
    make: (hooks: Pick<ConnectionOptions, 'slots' | 'changed' | 'heard'>) => UpstreamConnection,
  ) {
    this.slot = new ClaimedLater(slots);
    this.connection = make({
      slots: this.slot,
      changed: () => (this.adopter ? this.adopter.changed() : (this.hasChanged = true)),
      heard: (...said) => this.adopter?.heard(...said),
    });
  }

  /** Takes a slot, for which an idle program may end. False when there is none, or the program ended meanwhile: then it is to be closed. */
  claim(): Promise<boolean> {
    return this.slot.claim();
  }

  adoptedBy(adopter: Adopter): void {
    this.adopter = adopter;
    if (this.hasChanged) adopter.changed();
  }
}

/** Gives a pass to the connection at once; the slot is taken when it is claimed, for whoever has the pass then. */
class ClaimedLater implements Slots {
  private holder?: SlotHolder;
  private giveBack?: () => void;
  private isClaimed = false;

  constructor(private readonly slots: Slots) {}

  take(holder: SlotHolder, wait: Parameters<Slots['take']>[1]): Promise<() => void> {
    if (this.isClaimed) return this.slots.take(holder, wait);
    this.holder = holder;
    return Promise.resolve(() => this.free());
  }

  async claim(): Promise<boolean> {
    if (!this.holder) return false;
    const now = { signal: AbortSignal.abort(), mayWait: true };
    const giveBack = await this.slots.take(this.holder, now).catch(() => undefined);
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
