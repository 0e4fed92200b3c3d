import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { endWithText } from '../text-answer.js';
import type { HeldResponse } from './sse-streams.js';

/** How long a reader may read nothing before its connection is closed, in milliseconds. */
export const patienceMs = 30_000;
/** Frames of one turn up to this length (in characters) are sent as one chunk; a longer text is written at once. */
const gatherLength = 16_384;
/** How much may be buffered for a reader when the writer does not wait, in bytes. */
const maxBuffered = 1_048_576;

const sseHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
} as const;

/**
 * The body of a `text/event-stream` answer. Frames written in one turn of the event loop are sent as one chunk, the
 * last ones together with the end; a body that ends in its first turn is sent in one piece with the headers. Frames are
 * gathered here and not by `response.cork()`: on Node 22 and 24, `end()` on a corked response sends the last chunk of
 * the chunked coding (RFC 9112 section 7.1) before the corked data.
 */
export class EventStream extends EventEmitter implements HeldResponse {
  private gathered = '';
  /** Headers that are not sent yet. */
  private head?: Readonly<Record<string, string>>;
  private isScheduled = false;
  private isBehind = false;

  constructor(private readonly response: ServerResponse) {
    super();
    response.once('close', () => this.emit('close'));
    // A broken connection emits an error, then `close`.
    response.on('error', () => undefined);
  }

  get headersSent(): boolean {
    return this.head !== undefined || this.response.headersSent;
  }

  get writableEnded(): boolean {
    return this.response.writableEnded;
  }

  get writableLength(): number {
    return this.response.writableLength + this.gathered.length;
  }

  get destroyed(): boolean {
    return this.response.destroyed;
  }

  /** Prepares status 200 and the headers; they are sent with the first frame, or with `flushHeaders`. */
  writeHead(headers: Readonly<Record<string, string>> = sseHeaders): void {
    this.head = headers;
  }

  /** Sends the headers without waiting for the first frame. */
  flushHeaders(): void {
    this.takeHead();
    this.response.flushHeaders();
  }

  /**
   * Writes without waiting. A frame for a stream that has ended is dropped; a reader that is too far behind is
   * disconnected.
   */
  write(frame: string): void {
    if (this.isOver) return;
    if (this.writableLength > maxBuffered) this.destroy();
    else this.gather(frame);
  }

  /**
   * Writes, and waits while the reader is behind; a reader that reads nothing for 30 seconds is disconnected.
   * Resolves to false when the stream has ended or its reader has disconnected.
   */
  async send(frame: string): Promise<boolean> {
    if (this.isOver) return false;
    this.gather(frame);
    return this.isBehind ? this.drained() : true;
  }

  /** Ends the body with the buffered frames and a last one. A stream that was not opened yet is opened first. */
  end(frame = ''): void {
    const last = this.gathered + frame;
    this.gathered = '';
    if (this.isOver) return;
    if (!this.headersSent) this.writeHead();
    if (this.head) endWithText(this.response, 200, this.head, last);
    else if (last === '') this.response.end();
    else this.response.end(last);
  }

  destroy(): void {
    this.gathered = '';
    this.response.destroy();
  }

  private get isOver(): boolean {
    return this.response.writableEnded || this.response.destroyed;
  }

  private gather(frame: string): void {
    this.gathered += frame;
    if (this.gathered.length >= gatherLength) return this.flush();
    if (this.isScheduled) return;
    this.isScheduled = true;
    process.nextTick(() => {
      this.isScheduled = false;
      this.flush();
    });
  }

  private takeHead(): void {
    if (this.head) this.response.writeHead(200, this.head);
    this.head = undefined;
  }

  private flush(): void {
    const text = this.gathered;
    this.gathered = '';
    if (text === '' || this.isOver) return;
    this.takeHead();
    if (this.response.write(text) || this.isBehind) return;
    this.isBehind = true;
    this.response.once('drain', () => (this.isBehind = false));
  }

  private drained(): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (isAlive: boolean): void => {
        clearTimeout(late);
        this.response.off('drain', onDrain).off('close', onClose);
        if (!isAlive) this.destroy();
        resolve(isAlive);
      };
      const onDrain = (): void => settle(true);
      const onClose = (): void => settle(false);
      const late = setTimeout(onClose, patienceMs);
      this.response.once('drain', onDrain).once('close', onClose);
    });
  }
}
