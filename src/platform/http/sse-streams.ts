import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Notice } from '../../kernel/notices.js';
import { Notices } from '../bus/notices.js';
import { OnNotice } from '../bus/on-notice.decorator.js';
import { Metrics } from '../telemetry/metrics.js';

const perPrincipal = 50;
const perOrg = 200;
const perProcess = 5_000;
const heartbeatMs = 15_000;
const maxBuffered = 1_048_576;
/** How long a reader may take nothing before it is let go. */
export const patienceMs = 30_000;
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
  readonly org: string;
  readonly principal: string;
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
    const stream: SseStream = { org: ctx.org.id, principal, response, beats, hint };
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
  endOrg({ orgId }: Notice<'credentials.changed'>): void {
    for (const stream of this.streams) if (stream.org === orgId) endStream(stream.response);
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
      if (hint && response.headersSent) response.write(`retry: ${1_000 + Math.floor(Math.random() * 2_000)}\n\n`);
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
    add(this.ofOrg, stream.org, by);
    add(this.ofPrincipal, stream.principal, by);
    this.metrics.streams.set(this.streams.size);
  }

  private beat(): void {
    for (const { beats, response } of this.streams)
      if (beats && response.headersSent) writeBounded(response, ': keep-alive\n\n');
  }
}

export const sseHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
} as const;

/** Writes without waiting; a reader that is too far behind is let go. */
export function writeBounded(response: HeldResponse, frame: string): void {
  if (response.writableEnded) return;
  if (response.writableLength > maxBuffered) response.destroy();
  else response.write(frame);
}

/** Writes and waits while the reader is behind; one that takes nothing for too long is let go. False when it is gone. */
export async function writePatiently(response: ServerResponse, frame: string): Promise<boolean> {
  if (response.writableEnded || response.destroyed) return false;
  together(response);
  if (response.write(frame)) return true;
  return new Promise((resolve) => {
    const done = (alive: boolean) => (): void => {
      clearTimeout(late);
      response.off('drain', drained).off('close', closed);
      if (!alive) response.destroy();
      resolve(alive);
    };
    const [drained, closed] = [done(true), done(false)];
    const late = setTimeout(closed, patienceMs);
    response.once('drain', drained).once('close', closed);
  });
}

/** What is written in one turn of the loop leaves as one packet. */
function together(response: ServerResponse): void {
  if (response.writableCorked > 0) return;
  response.cork();
  process.nextTick(() => response.uncork());
}

/** A clean end for a client that reads; one that does not is let go. */
export function endStream(response: HeldResponse): void {
  if (response.writableLength > 0) response.destroy();
  else response.end();
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
