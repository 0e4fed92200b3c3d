import type { EventEmitter } from 'node:events';
import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { isOf, type CallContext } from '../../../kernel/call-context.js';
import { systemClock } from '../../../kernel/clock.js';
import { RialtoError } from '../../../kernel/errors.js';
import type { Notice } from '../../../kernel/notices.js';
import { Notices } from '../../bus/notices.js';
import { OnNotice } from '../../bus/on-notice.decorator.js';
import { Metrics } from '../../telemetry/metrics.js';

const perPrincipal = 50;
const perOrg = 200;
const perProcess = 5_000;
const heartbeatMs = 15_000;
/** How long a reader that is behind when its stream ends may take to read the rest. */
const lastReadMs = 5_000;
/** The longest delay of a Node timer; a stream of that age may be ended and opened again. */
const maxTimerMs = 2_147_483_647;

/**
 * The operations that counting and ending a stream needs of its connection: an HTTP response, a gRPC call or a
 * WebSocket.
 */
export interface HeldResponse extends EventEmitter {
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  readonly writableLength: number;
  /** True when it is already closed and will not emit `close` again. */
  readonly destroyed?: boolean;
  write(text: string): unknown;
  end(): unknown;
  destroy(): unknown;
}

/** One open stream of this process. */
export interface SseStream {
  readonly principal: string;
  readonly ctx: CallContext;
  readonly response: HeldResponse;
  /** Sends a reconnection hint when this process stops. */
  readonly hint: boolean;
  /** False where other code sends heartbeats. */
  readonly beats: boolean;
}

/**
 * The standing streams of this process, for all protocols. They are counted against limits per principal, org and
 * process, kept alive, ended with their credential, and disconnected when their reader does not read (abuse 35).
 */
@Injectable()
export class SseStreams implements BeforeApplicationShutdown {
  private readonly streams = new Set<SseStream>();
  private readonly ofOrg = new Map<string, number>();
  private readonly ofPrincipal = new Map<string, number>();
  private readonly timer = setInterval(() => this.beat(), heartbeatMs).unref();

  constructor(
    private readonly metrics: Metrics,
    notices: Notices,
  ) {
    notices.onMissed(() => this.endAll());
  }

  /**
   * Counts a stream until it closes, and ends it when its credential expires. Throws `rate_limited` when a limit is
   * exceeded.
   */
  hold(ctx: CallContext, response: HeldResponse, { beats = true, hint = false } = {}): SseStream {
    const principal = `${ctx.org.id}/${ctx.principal.kind}:${ctx.principal.id}`;
    this.requireStreamPlace(ctx.org.id, principal);
    const stream: SseStream = { principal, ctx, response, beats, hint };
    if (response.destroyed) return stream; // its reader disconnected while the stream was opened
    this.countStream(stream, 1);
    const expiry = ctx.expiresAt === undefined ? undefined : expiryTimer(ctx.expiresAt, response);
    response.on('error', () => undefined); // a writer may use a stream that was just ended
    response.once('close', () => {
      clearTimeout(expiry);
      this.countStream(stream, -1);
    });
    return stream;
  }

  /**
   * Ends the streams that a changed credential may affect: their clients connect again and are authenticated again
   * (abuse case 6).
   */
  @OnNotice('credentials.changed')
  endThoseOf({ orgId, ...affected }: Notice<'credentials.changed'>): void {
    for (const { ctx, response } of this.streams)
      if (ctx.org.id === orgId && isAffected(ctx, affected)) endStream(response);
  }

  /** Notices were missed; one of them may have been a revocation. */
  private endAll(): void {
    for (const { response } of this.streams) endStream(response);
  }

  /**
   * Runs before the server closes, which waits for every open answer. Readers reconnect to another process, after
   * random delays.
   */
  beforeApplicationShutdown(): void {
    clearInterval(this.timer);
    for (const { response, beats, hint } of this.streams) {
      if (!beats) continue;
      if (hint) response.write(`retry: ${1_000 + Math.floor(Math.random() * 2_000)}\n\n`);
      response.end();
    }
  }

  private requireStreamPlace(org: string, principal: string): void {
    const ofOrg = this.ofOrg.get(org) ?? 0;
    const ofPrincipal = this.ofPrincipal.get(principal) ?? 0;
    if (this.streams.size < perProcess && ofOrg < perOrg && ofPrincipal < perPrincipal) return;
    throw new RialtoError('rate_limited', { message: 'too many open streams', data: { retryAfterSeconds: 10 } });
  }

  private countStream(stream: SseStream, by: 1 | -1): void {
    if (by === 1) this.streams.add(stream);
    else this.streams.delete(stream);
    add(this.ofOrg, stream.ctx.org.id, by);
    add(this.ofPrincipal, stream.principal, by);
    this.metrics.streams.set(this.streams.size);
  }

  private beat(): void {
    for (const { beats, response } of this.streams)
      if (beats && response.headersSent) response.write(': keep-alive\n\n');
  }
}

function isAffected(
  ctx: CallContext,
  { caller, kind, tokenId }: Omit<Notice<'credentials.changed'>, 'orgId'>,
): boolean {
  if (tokenId !== undefined) return ctx.tokenId === tokenId;
  return isOf(ctx, caller) && (kind === undefined || ctx.principal.kind === kind);
}

/** Ends a stream after its buffered data. A reader that does not read the rest within 5 seconds is disconnected. */
export function endStream(response: HeldResponse): void {
  response.end();
  if (response.destroyed || response.writableLength === 0) return;
  const late = setTimeout(() => response.destroy(), lastReadMs).unref();
  response.once('close', () => clearTimeout(late));
}

function add(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}

function expiryTimer(expiresAt: number, response: HeldResponse): NodeJS.Timeout {
  const left = Math.min(Math.max(expiresAt - systemClock.now(), 0), maxTimerMs);
  return setTimeout(() => endStream(response), left).unref();
}
