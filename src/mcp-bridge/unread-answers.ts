import type { ServerResponse } from 'node:http';
import { callerOf } from '../kernel/call-context.js';
import type { DoorRequest } from '../platform/http/http.types.js';

const unreadMs = 30_000;
const maxUnread = 134_217_728;
const maxOfPrincipal = 33_554_432;

interface Unread {
  readonly length: number;
  readonly principal: string;
}

/**
 * Answers that their clients have not read yet: let go after 30 s, and the oldest at once when those of one principal pass 32 MiB or all
 * together 128 MiB, so that clients that never read cannot fill the process (abuse case: slow readers).
 */
export class UnreadAnswers {
  private readonly unread = new Map<ServerResponse, Unread>();
  private readonly totals = new Map<string, number>();
  private total = 0;

  /** `ms` after which an answer is let go; `max` bytes that may wait in all, and of one principal. */
  constructor(
    private readonly ms = unreadMs,
    private readonly max = maxUnread,
    private readonly maxOfOne = maxOfPrincipal,
  ) {}

  /** For an answer that was written to its end; what the operating system took at once needs no watch. */
  watch(response: ServerResponse): void {
    const length = response.writableLength;
    if (length === 0 || response.destroyed) return;
    const timer = setTimeout(() => response.destroy(), this.ms).unref();
    response.once('close', () => {
      clearTimeout(timer);
      this.forget(response);
    });
    const principal = principalOf(response);
    this.unread.set(response, { length, principal });
    this.add(principal, length);
    this.letOldestGo(principal);
  }

  private letOldestGo(principal: string): void {
    for (const [response, one] of this.unread) {
      const isTooMuch = this.total > this.max || (this.totals.get(principal) ?? 0) > this.maxOfOne;
      if (!isTooMuch) return;
      if (this.total <= this.max && one.principal !== principal) continue;
      this.forget(response);
      response.destroy();
    }
  }

  private forget(response: ServerResponse): void {
    const known = this.unread.get(response);
    if (!known) return;
    this.unread.delete(response);
    this.add(known.principal, -known.length);
  }

  private add(principal: string, length: number): void {
    this.total += length;
    const total = (this.totals.get(principal) ?? 0) + length;
    if (total > 0) this.totals.set(principal, total);
    else this.totals.delete(principal);
  }
}

function principalOf(response: ServerResponse): string {
  const { ctx } = response.req as DoorRequest;
  return ctx ? `${ctx.org.id} ${callerOf(ctx.principal)}` : '';
}

/** The one count of this process. */
export const unreadAnswers = new UnreadAnswers();

/** For an answer that someone else writes: lets its client go when bytes wait at two looks, 30 s apart, in a row. */
export function watchReader(response: ServerResponse, ms = unreadMs): void {
  let waiting = false;
  const timer = setInterval(() => {
    const waits = response.writableLength > 0;
    if (waiting && waits) response.destroy();
    waiting = waits;
  }, ms).unref();
  response.once('close', () => clearInterval(timer));
}
