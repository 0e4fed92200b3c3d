import { BoundedMap } from '../../kernel/bounded-map.js';
import type { CallLimit } from '../../kernel/call-context.js';

/**
 * A token bucket: it had `tokens` at the time `at` (ms). It refills `perMinute` tokens evenly and holds at most the
 * tokens of half a minute, at least 10, but never more than those of one minute.
 */
export interface Bucket {
  readonly tokens: number;
  readonly at: number;
}

export interface Taken {
  readonly bucket: Bucket;
  /** 0 when the request is accepted, else the whole seconds until the next one is. */
  readonly retryAfterSeconds: number;
}

export function burstOf(perMinute: number): number {
  return Math.min(perMinute, Math.max(10, Math.ceil(perMinute / 2)));
}

/** Takes one token, or returns the time to wait. Pure: the same bucket and time give the same answer. */
export function takeToken(bucket: Bucket | undefined, perMinute: number, now: number): Taken {
  const perMs = perMinute / 60_000;
  const burst = burstOf(perMinute);
  const tokens = bucket ? Math.min(burst, bucket.tokens + Math.max(0, now - bucket.at) * perMs) : burst;
  if (tokens >= 1) return { bucket: { tokens: tokens - 1, at: now }, retryAfterSeconds: 0 };
  return { bucket: { tokens, at: now }, retryAfterSeconds: Math.max(1, Math.ceil((1 - tokens) / perMs / 1_000)) };
}

/**
 * Token buckets by key. Their number is limited: the least recently used bucket is dropped, and starts full again.
 */
export class Buckets {
  private readonly buckets: BoundedMap<string, Bucket>;

  constructor(
    private readonly perMinute: number,
    most = 20_000,
  ) {
    this.buckets = new BoundedMap(most);
  }

  /** Takes a token of a key. Returns 0, or the seconds until a token is available. */
  takeToken(key: string, now: number): number {
    const { bucket, retryAfterSeconds } = takeToken(this.buckets.get(key), this.perMinute, now);
    this.buckets.set(key, bucket);
    return retryAfterSeconds;
  }

  /** Returns the remaining tokens after the last `takeToken`. */
  left(key: string): CallLimit {
    const limit = burstOf(this.perMinute);
    const tokens = this.buckets.get(key)?.tokens ?? limit;
    return {
      limit,
      remaining: Math.floor(tokens),
      secondsLeft: Math.ceil(((limit - tokens) * 60) / this.perMinute),
    };
  }

  /** Returns the seconds until a token is available, without taking one. */
  wait(key: string, now: number): number {
    return takeToken(this.buckets.get(key), this.perMinute, now).retryAfterSeconds;
  }
}

/** Number of delegation hops that are allowed behind one call (AN-61). */
export const maxDepth = 3;
