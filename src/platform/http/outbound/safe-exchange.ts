import { setMaxListeners } from 'node:events';
import { Readable } from 'node:stream';
import { RialtoError, type ErrorCode } from '../../../kernel/errors.js';
import { ByteCollector } from '../../byte-collector.js';
import { markDeparted } from './departed.js';
import { responseHeaders } from './safe-headers.js';

/** The controller that undici passes to a running request. */
interface Controller {
  rawHeaders?: unknown;
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}
type RawHeaders = Record<string, string | string[] | undefined>;

const maxHeaders = 256;
const maxInformational = 16;
const streamBufferBytes = 65_536;
/** The longest delay of a Node timer; a longer one fires at once. */
const longestTimerMs = 2_147_483_647;

const meanings: Readonly<Record<string, ErrorCode>> = {
  UND_ERR_HEADERS_OVERFLOW: 'remote_invalid_response',
  UND_ERR_INVALID_ARG: 'invalid_params',
};

/**
 * Maps a failure below HTTP to an error code. Details stay in the cause, which only the gateway sees (RE-28, abuse
 * 23).
 */
function meaningOf(error: unknown): RialtoError {
  if (error instanceof RialtoError) return error;
  const { code = '' } = (error ?? {}) as { code?: string };
  return new RialtoError(meanings[code] ?? 'remote_transport', { cause: error });
}

function tooLarge(what: string, more: string): RialtoError {
  const cause = new Error(`${what} over the limit`);
  return new RialtoError('remote_invalid_response', { message: `the answer has ${more}`, cause });
}

/**
 * One request on one socket, as undici's dispatch handler. It counts headers and raw bytes, and ends the socket as
 * soon as a limit is exceeded. `released` returns the connection, or discards it.
 */
export abstract class Exchange {
  status = 0;
  headers: Record<string, string> = {};
  /** Settles when the answer can be used: when it is complete, or for a stream when its head has arrived. */
  readonly ready: Promise<void>;
  /** Called once, when nothing more can happen on the connection; false when it may not be used again. */
  released?: (reusable: boolean) => void;
  protected controller?: Controller;
  protected accept!: () => void;
  private finished = false;
  private refuse!: (error: RialtoError) => void;
  private received = 0;
  private informational = 0;

  constructor(
    private readonly maxBytes: number,
    private readonly headOnly: boolean,
  ) {
    this.ready = new Promise((resolve, reject) => {
      this.accept = resolve;
      this.refuse = reject;
    });
  }

  /** True once the exchange has succeeded or an error stopped it. */
  get over(): boolean {
    return this.finished;
  }

  /** True when the request was sent on a socket and no status was received. */
  get isUnanswered(): boolean {
    return this.controller !== undefined && this.status === 0;
  }

  protected abstract onChunk(chunk: Buffer): void;
  protected abstract onEnd(): void;
  protected onHead(): void {}
  protected onFail(_error: RialtoError): void {}

  /** Ends the exchange and its socket. Calls after the end do nothing. */
  fail(error: unknown): void {
    if (this.finished) return;
    this.finished = true;
    const meaning = meaningOf(error);
    if (this.controller !== undefined) markDeparted(meaning);
    this.controller?.abort(meaning);
    this.released?.(false);
    this.refuse(meaning);
    this.onFail(meaning);
  }

  onRequestStart(controller: Controller): void {
    if (this.finished) controller.abort(new RialtoError('canceled'));
    else this.controller = controller;
  }

  onResponseStart(controller: Controller, status: number, received: RawHeaders): void {
    if (status < 200) {
      if (++this.informational > maxInformational)
        this.fail(tooLarge('informational answers', 'too many informational answers'));
      return;
    }
    if (Array.isArray(controller.rawHeaders) && controller.rawHeaders.length > maxHeaders * 2)
      return this.fail(tooLarge('headers', 'too many headers'));
    if (!this.headOnly && Number(received['content-length']) > this.maxBytes)
      return this.fail(tooLarge('body', `a body of more than ${this.maxBytes} bytes`));
    this.status = status;
    this.headers = responseHeaders(received);
    this.onHead();
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.received += chunk.length;
    if (this.received > this.maxBytes) this.fail(tooLarge('body', `a body of more than ${this.maxBytes} bytes`));
    else if (!this.finished) this.onChunk(chunk);
  }

  onResponseEnd(): void {
    if (this.finished) return;
    this.finished = true;
    this.released?.(true);
    this.onEnd();
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.fail(error);
  }
}

/** An exchange that buffers the whole body. */
export class BufferedExchange extends Exchange {
  readonly body = new ByteCollector();

  protected onChunk(chunk: Buffer): void {
    this.body.add(chunk);
    if (this.body.isShredded) this.fail(tooLarge('chunks', 'too many tiny chunks'));
  }

  protected onEnd(): void {
    this.accept();
  }
}

/** An exchange that buffers the first bytes of the body and then ends the socket, earlier if its chunks are tiny. */
export class BeginningExchange extends Exchange {
  readonly body = new ByteCollector();
  /** True when the body continued, or may have continued. */
  isCut = false;

  constructor(
    private left: number,
    headOnly: boolean,
  ) {
    super(Infinity, headOnly);
  }

  protected onChunk(chunk: Buffer): void {
    this.body.add(chunk.subarray(0, this.left));
    this.left -= chunk.length;
    if (this.left > 0 && !this.body.isShredded) return;
    this.isCut = true;
    this.accept();
    this.fail(new RialtoError('canceled'));
  }

  protected onEnd(): void {
    this.accept();
  }
}

/**
 * An exchange with a body that is read while it arrives; the reader's speed is applied as back-pressure. No byte for
 * `idleMs` while the reader waits is `remote_timeout` (abuse 25, 26). Destroying the body ends the socket.
 */
export class StreamedExchange extends Exchange {
  readonly body: Readable;
  /** Called once, when nothing more can happen on the network. */
  settled?: () => void;
  private idle?: NodeJS.Timeout;
  private paused = false;

  constructor(
    maxBytes: number,
    headOnly: boolean,
    private readonly idleMs: number | undefined,
  ) {
    super(maxBytes, headOnly);
    this.body = new Readable({
      highWaterMark: streamBufferBytes,
      read: () => this.resume(),
      destroy: (error, done) => {
        if (!this.over) this.fail(error ?? new RialtoError('canceled'));
        done(error);
      },
    });
    this.body.on('error', () => undefined);
  }

  protected override onHead(): void {
    if (this.idleMs !== undefined) this.idle = setTimeout(() => this.onIdle(), this.idleMs);
    this.accept();
  }

  protected onChunk(chunk: Buffer): void {
    this.idle?.refresh();
    if (this.body.push(chunk)) return;
    this.paused = true;
    this.controller?.pause();
  }

  protected onEnd(): void {
    this.body.push(null);
    this.markSettled();
  }

  protected override onFail(error: RialtoError): void {
    this.body.destroy(error);
    this.markSettled();
  }

  private resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.idle?.refresh();
    this.controller?.resume();
  }

  private onIdle(): void {
    if (this.paused) this.idle?.refresh();
    else this.fail(new RialtoError('remote_timeout'));
  }

  private markSettled(): void {
    clearTimeout(this.idle);
    this.settled?.();
  }
}

/** Applies the total deadline and the caller's signals to an operation, for its current exchange. */
export class ExchangeDeadline {
  failure?: RialtoError;
  private exchange?: Exchange;
  private readonly timer: NodeJS.Timeout;
  private readonly onAbort = (): void => this.cut(new RialtoError('canceled'));

  constructor(
    deadlineMs: number,
    private readonly signals: readonly AbortSignal[],
  ) {
    this.timer = setTimeout(() => this.cut(new RialtoError('remote_timeout')), Math.min(deadlineMs, longestTimerMs));
    for (const signal of signals) {
      // One signal serves many exchanges at once; each removes its listener in `release`.
      setMaxListeners(Infinity, signal);
      if (signal.aborted) this.cut(new RialtoError('canceled'));
      else signal.addEventListener('abort', this.onAbort, { once: true });
    }
  }

  /** Applies the deadline and the signals to the exchange that runs now. */
  guard(exchange: Exchange): void {
    this.exchange = exchange;
    if (this.failure !== undefined) exchange.fail(this.failure);
  }

  release(): void {
    clearTimeout(this.timer);
    for (const signal of this.signals) signal.removeEventListener('abort', this.onAbort);
  }

  private cut(error: RialtoError): void {
    this.failure ??= error;
    this.exchange?.fail(this.failure);
  }
}
