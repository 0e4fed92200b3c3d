import { setTimeout as sleep } from 'node:timers/promises';
import type { StreamResponse } from '../../protocol/a2a/model.js';

/**
 * Event stream of a remote task that is read beside polls. Never throws: a stream that cannot be opened or breaks
 * counts as closed.
 */
export class EventTap {
  private isOpen = true;
  private hasSentEvent = false;
  private readonly stop = new AbortController();
  private readonly events: AsyncIterator<StreamResponse, void>;
  private pending?: Promise<StreamResponse | undefined>;

  /**
   * Opens the stream.
   *
   * @param open opens the stream; its signal ends it.
   */
  constructor(open: (signal: AbortSignal) => AsyncIterable<StreamResponse>) {
    this.events = open(this.stop.signal)[Symbol.asyncIterator]() as AsyncIterator<StreamResponse, void>;
  }

  /** True when the stream is open and has sent an event: some agents declare streams and send nothing. */
  get isTrusted(): boolean {
    return this.isOpen && this.hasSentEvent;
  }

  /**
   * Waits for the next event, at most `ms` milliseconds. Returns undefined without an event in that time, when the
   * stream ends, or when the signal aborts.
   */
  async next(ms: number, signal: AbortSignal): Promise<StreamResponse | undefined> {
    this.pending ??= this.events.next().then(
      ({ value }) => value ?? this.over(),
      () => this.over(),
    );
    const timeout = new AbortController();
    const pause = sleep(ms, undefined, { signal: AbortSignal.any([timeout.signal, signal]) }).catch(() => undefined);
    const event = await Promise.race(this.isOpen ? [this.pending, pause] : [pause]);
    timeout.abort();
    if (!event) return undefined;
    this.hasSentEvent = true;
    this.pending = undefined;
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
