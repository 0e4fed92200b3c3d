import type { ServerResponse } from 'node:http';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';

const perPrincipal = 50;
const perOrg = 200;
const perProcess = 5_000;
const heartbeatMs = 15_000;
const maxBuffered = 1_048_576;
/** The longest that a timer waits; a stream that old may as well be opened anew. */
const maxTimerMs = 2_147_483_647;

interface Stream {
  readonly org: string;
  readonly principal: string;
  /** Undefined for a subscription of the 2026-07-28 revision, which the SDK writes. */
  readonly session?: string;
  readonly response: ServerResponse;
}

/**
 * The standing streams of this process, of both eras: capped, ended with the credential they were opened by. List changes go
 * out on those of the 2025 era, slow readers are let go.
 */
export class McpStreams {
  private readonly streams = new Set<Stream>();
  private readonly timer = setInterval(() => this.beat(), heartbeatMs).unref();

  /** Opens the GET stream of a session. Throws `rate_limited` beyond the caps per principal, org and process. */
  open(ctx: CallContext, session: string, response: ServerResponse): void {
    this.hold(ctx, response, session);
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    response.write(': open\n\n');
  }

  /** Counts a stream until it closes, and ends it when its credential does. Throws as `open` does. */
  hold(ctx: CallContext, response: ServerResponse, session?: string): void {
    const principal = `${ctx.org.id}/${ctx.principal.kind}:${ctx.principal.id}`;
    this.requireRoom(ctx.org.id, principal);
    const stream: Stream = { org: ctx.org.id, principal, session, response };
    this.streams.add(stream);
    const expiry = ctx.expiresAt === undefined ? undefined : expiryTimer(ctx.expiresAt, response);
    response.on('error', () => undefined); // whoever writes to a stream that was just ended
    response.once('close', () => {
      clearTimeout(expiry);
      this.streams.delete(stream);
    });
  }

  /** Sends a notification to every stream of an org. */
  notify(org: string, method: string): void {
    const frame = `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method })}\n\n`;
    for (const stream of this.streams) if (stream.org === org) this.write(stream, frame);
  }

  endSession(session: string): void {
    for (const stream of this.streams) if (stream.session === session) end(stream.response);
  }

  /** Ends the streams of an org; clients come back and authenticate again. */
  endOrg(org: string): void {
    for (const stream of this.streams) if (stream.org === org) end(stream.response);
  }

  /** Ends every stream: notices were missed, a revocation may be among them. */
  endAll(): void {
    for (const { response } of this.streams) end(response);
  }

  close(): void {
    clearInterval(this.timer);
    for (const { session, response } of this.streams) if (session !== undefined) response.end();
  }

  private requireRoom(org: string, principal: string): void {
    let [ofOrg, ofPrincipal] = [0, 0];
    for (const stream of this.streams) {
      if (stream.org === org) ofOrg += 1;
      if (stream.principal === principal) ofPrincipal += 1;
    }
    if (this.streams.size < perProcess && ofOrg < perOrg && ofPrincipal < perPrincipal) return;
    throw new RialtoError('rate_limited', { message: 'too many open streams', data: { retryAfterSeconds: 10 } });
  }

  private beat(): void {
    for (const stream of this.streams) this.write(stream, ': keep-alive\n\n');
  }

  private write({ session, response }: Stream, frame: string): void {
    if (session === undefined || response.writableEnded) return;
    if (response.writableLength > maxBuffered) response.destroy();
    else response.write(frame);
  }
}

function expiryTimer(expiresAt: number, response: ServerResponse): NodeJS.Timeout {
  const left = Math.min(Math.max(expiresAt - systemClock.now(), 0), maxTimerMs);
  return setTimeout(() => end(response), left).unref();
}

/** A clean end for a client that reads; one that does not is let go. */
function end(response: ServerResponse): void {
  if (response.writableLength > 0) response.destroy();
  else response.end();
}
