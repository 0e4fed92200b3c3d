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
const farewellMs = 5_000;
/** The longest that a timer waits; a stream that old may as well be opened anew. */
const maxTimerMs = 2_147_483_647;

/** What a stream is written to, as far as counting and ending it goes: an answer of HTTP, or a call of gRPC. */
export interface HeldResponse extends EventEmitter {
  readonly headersSent: boolean;
  readonly writableEnded: boolean;
  readonly writableLength: number;
  /** It is closed already, and will not say so again. */
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
  /** The reconnection hint it leaves with when this process stops. */
  readonly hint: boolean;
  /** Undefined where somebody else writes heartbeats. */
  readonly beats: boolean;
}

/**
 * The standing streams of this process, whatever protocol they speak: counted against caps per principal, org and process,
 * kept alive, ended with the credential they were opened by, and let go when their reader does not read (abuse 35, F37).
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

  /** Counts a stream until it closes, and ends it when its credential does. Throws `rate_limited` beyond a cap. */
  hold(ctx: CallContext, response: HeldResponse, { beats = true, hint = false } = {}): SseStream {
    const principal = `${ctx.org.id}/${ctx.principal.kind}:${ctx.principal.id}`;
    this.requireRoom(ctx.org.id, principal);
    const stream: SseStream = { principal, ctx, response, beats, hint };
    if (response.destroyed) return stream; // its reader left while it was being opened
    this.count(stream, 1);
    const expiry = ctx.expiresAt === undefined ? undefined : expiryTimer(ctx.expiresAt, response);
    response.on('error', () => undefined); // whoever writes to a stream that was just ended
    response.once('close', () => {
      clearTimeout(expiry);
      this.count(stream, -1);
    });
    return stream;
  }

  /** Whose streams these are may have changed: their clients come back and are asked again (abuse case 6). */
  @OnNotice('credentials.changed')
  endThoseOf({ orgId, ...whose }: Notice<'credentials.changed'>): void {
    for (const { ctx, response } of this.streams) if (ctx.org.id === orgId && isMeant(ctx, whose)) endStream(response);
  }

  /** Notices were missed, a revocation may be among them. */
  private endAll(): void {
    for (const { response } of this.streams) endStream(response);
  }

  /** Before the server closes, which waits for every open answer; readers come back to another process, not all at once. */
  beforeApplicationShutdown(): void {
    clearInterval(this.timer);
    for (const { response, beats, hint } of this.streams) {
      if (!beats) continue;
      if (hint) response.write(`retry: ${1_000 + Math.floor(Math.random() * 2_000)}\n\n`);
      response.end();
    }
  }

  private requireRoom(org: string, principal: string): void {
    const ofOrg = this.ofOrg.get(org) ?? 0;
    const ofPrincipal = this.ofPrincipal.get(principal) ?? 0;
    if (this.streams.size < perProcess && ofOrg < perOrg && ofPrincipal < perPrincipal) return;
    throw new RialtoError('rate_limited', { message: 'too many open streams', data: { retryAfterSeconds: 10 } });
  }

  private count(stream: SseStream, by: 1 | -1): void {
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

function isMeant(ctx: CallContext, { caller, kind, tokenId }: Omit<Notice<'credentials.changed'>, 'orgId'>): boolean {
  if (tokenId !== undefined) return ctx.tokenId === tokenId;
  return isOf(ctx, caller) && (kind === undefined || ctx.principal.kind === kind);
}

/** Ends a stream after what was written to it; a reader that does not take the rest within 5 seconds is disconnected. */
export function endStream(response: HeldResponse): void {
  response.end();
  if (response.destroyed || response.writableLength === 0) return;
  const late = setTimeout(() => response.destroy(), farewellMs).unref();
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
