import type { ServerResponse } from 'node:http';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { keysOf, type ShareLimits } from '../../platform/http/shares/shares.js';
import { payerOf } from '../../platform/http/shares/share-queue.js';

const unreadMs = 30_000;
const mebibyte = 1_048_576;
const defaultLimits: ShareLimits = { principal: 32 * mebibyte, org: 64 * mebibyte, process: 128 * mebibyte };

interface Unread {
  readonly length: number;
  /** Keys of its principal, of its org, and of the process. */
  readonly keys: readonly string[];
}

/**
 * Answers that their clients have not read. Each is closed after 30 s. The oldest is closed at once when the unread
 * answers of one principal exceed 32 MiB, of one org 64 MiB or of the process 128 MiB, so that clients that never read
 * cannot exhaust the memory (abuse case: slow readers).
 */
export class UnreadAnswers {
  private readonly unread = new Map<ServerResponse, Unread>();
  private readonly totals = new Map<string, number>();
  private readonly limits: readonly number[];

  /** `ms` is the time after which an answer is closed; `limits` are in bytes. */
  constructor(
    private readonly ms = unreadMs,
    limits = defaultLimits,
  ) {
    this.limits = [limits.principal, limits.org, limits.process];
  }

  /** Watches an answer that was written completely; one that the operating system took at once needs no watch. */
  watchAnswer(response: ServerResponse): void {
    const length = response.writableLength;
    if (length === 0 || response.destroyed) return;
    const timer = setTimeout(() => response.destroy(), this.ms).unref();
    response.once('close', () => {
      clearTimeout(timer);
      this.forgetAnswer(response);
    });
    const keys = keysAt(response);
    this.unread.set(response, { length, keys });
    this.addLength(keys, length);
    this.closeOldest(keys);
  }

  private closeOldest(keys: readonly string[]): void {
    for (const [response, one] of this.unread) {
      const over = keys.filter((key, scope) => (this.totals.get(key) ?? 0) > this.limits[scope]!);
      if (over.length === 0) return;
      if (!one.keys.some((key) => over.includes(key))) continue;
      this.forgetAnswer(response);
      response.destroy();
    }
  }

  private forgetAnswer(response: ServerResponse): void {
    const known = this.unread.get(response);
    if (!known) return;
    this.unread.delete(response);
    this.addLength(known.keys, -known.length);
  }

  private addLength(keys: readonly string[], length: number): void {
    for (const key of keys) {
      const total = (this.totals.get(key) ?? 0) + length;
      if (total > 0) this.totals.set(key, total);
      else this.totals.delete(key);
    }
  }
}

function keysAt(response: ServerResponse): readonly string[] {
  const { ctx } = response.req as DoorRequest;
  return keysOf(ctx ? payerOf(ctx) : { principal: '', org: '' });
}

/** The only instance of this process. */
export const unreadAnswers = new UnreadAnswers();

/** Watches an answer that other code writes: closes it when bytes are waiting at two checks in a row, 30 s apart. */
export function watchReader(response: ServerResponse, ms = unreadMs): void {
  let waiting = false;
  const timer = setInterval(() => {
    const waits = response.writableLength > 0;
    if (waiting && waits) response.destroy();
    waiting = waits;
  }, ms).unref();
  response.once('close', () => clearInterval(timer));
}
