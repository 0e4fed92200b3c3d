import { BoundedMap } from '../../kernel/bounded-map.js';

/**
 * Remembers envelopes, so that one is not accepted for a second task. A repeated delivery for the same task is
 * accepted, because the gateway delivers at least once.
 */
export interface ReplayGuard {
  /**
   * Returns false when the envelope was used at another place before, and remembers it otherwise.
   * @param id unique for each envelope. @param place of the message: its task, else its message id.
   */
  admit(id: string, place: string): boolean | Promise<boolean>;
}

/** Remembers the last 100,000 envelopes of this process. Give a guard with a table where a restart must not forget. */
export class MemoryReplayGuard implements ReplayGuard {
  private readonly places: BoundedMap<string, string>;

  constructor(capacity = 100_000) {
    this.places = new BoundedMap(capacity);
  }

  admit(id: string, place: string): boolean {
    const known = this.places.get(id);
    if (known === undefined) this.places.set(id, place);
    return known === undefined || known === place;
  }
}
