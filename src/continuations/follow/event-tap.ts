import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamResponse } from '../../protocol/a2a/model.js';

/** A stream that is listened to beside other things; it never throws: one that cannot be had, or broke, is closed. */
export class EventTap {
  private isOpen = true;
  private hasSpoken = false;
  private readonly stop = new AbortController();
  private readonly events: AsyncIterator<StreamResponse, void>;
  private coming?: Promise<StreamResponse | undefined>;

  /** @param open begins the stream; its signal ends it. */
  constructor(open: (signal: AbortSignal) => AsyncIterable<StreamResponse>) {
    this.events = open(this.stop.signal)[Symbol.asyncIterator]() as AsyncIterator<StreamResponse, void>;
  }

  /** It is open and has said something: not all that say that they stream do. */
  get isTrusted(): boolean {
    return this.isOpen && this.hasSpoken;
  }

  /** The next event within so many milliseconds; undefined when there is none, the stream has just ended, or the signal aborts. */
  async next(ms: number, signal: AbortSignal): Promise<StreamResponse | undefined> {
    this.coming ??= this.events.next().then(
      ({ value }) => value ?? this.over(),
      () => this.over(),
    );
    const enough = new AbortController();
    const pause = sleep(ms, undefined, { signal: AbortSignal.any([enough.signal, signal]) }).catch(() => undefined);
    const event = await Promise.race(this.isOpen ? [this.coming, pause] : [pause]);
    enough.abort();
    if (!event) return undefined;
    this.hasSpoken = true;
    this.coming = undefined;
    return event;
  }

  close(): void {
    this.isOpen = false;
    this.stop.abort();
  }

  private over(): undefined {
    this.isOpen = false;
    return undefined;
  }
}
