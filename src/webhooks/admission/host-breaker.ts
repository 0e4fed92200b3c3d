import { doubled } from '../../kernel/backoff.js';

/**
 * State of a circuit breaker after its last posts. `half-open`: one probe is under way. Times are milliseconds of a
 * monotonic clock.
 */
export type Breaker =
  | {
      readonly kind: 'closed';
      /** Start of the window in which posts are counted. */
      readonly since: number;
      readonly posts: number;
      readonly failures: number;
      readonly inARow: number;
    }
  | { readonly kind: 'open'; readonly until: number; readonly times: number }
  | { readonly kind: 'half-open'; readonly times: number };

/**
 * The end of a post. `refused`: the host answers, but has no capacity for this caller; `silent`: there was no answer;
 * `none`: nothing was posted.
 */
export type PostEnd = 'answered' | 'refused' | 'silent' | 'none';

/** The meaning of an end for a breaker. */
export type BreakerEnd = 'good' | 'bad' | 'none';

const windowMs = 60_000;
const minPosts = 20;
const maxInARow = 10;
const openTime = { firstMs: 5_000, mostMs: 60_000 };

/**
 * Statuses that mean that the host has no capacity for this caller; any other answer concerns only the one receiver.
 */
const busyStatuses = new Set([429, 502, 503, 504]);

/** The breaker of a host without known failures. */
export function closedBreaker(now: number): Breaker {
  return { kind: 'closed', since: now, posts: 0, failures: 0, inARow: 0 };
}

/** Admission to a host now: any post, one probe, or nothing. */
export function admission(breaker: Breaker, now: number): 'post' | 'probe' | 'nothing' {
  if (breaker.kind === 'closed') return 'post';
  return breaker.kind === 'open' && now >= breaker.until ? 'probe' : 'nothing';
}

/**
 * The breaker after a post. A closed one opens after ten failures in a row, or when half of at least twenty posts
 * within a minute failed.
 */
export function afterPost(breaker: Breaker, end: BreakerEnd, now: number): Breaker {
  // A post that was under way when the breaker opened adds no information.
  if (end === 'none' || breaker.kind !== 'closed') return breaker;
  const isOld = now - breaker.since > windowMs;
  const before = isOld ? { since: now, posts: 0, failures: 0 } : breaker;
  const failed = end === 'bad' ? 1 : 0;
  const [posts, failures] = [before.posts + 1, before.failures + failed];
  const inARow = failed ? breaker.inARow + 1 : 0;
  const isDown = inARow >= maxInARow || (posts >= minPosts && 2 * failures >= posts);
  return isDown ? openBreaker(1, now) : { kind: 'closed', since: before.since, posts, failures, inARow };
}

/** The breaker after a probe. Each failed probe doubles the time it stays open, up to a minute. */
export function afterProbe(times: number, end: BreakerEnd, now: number): Breaker {
  if (end === 'good') return closedBreaker(now);
  return end === 'bad' ? openBreaker(times + 1, now) : { kind: 'open', until: now, times };
}

/**
 * The meaning of an end for the host, which all orgs share: any answer shows that it is up. Silence towards one org
 * alone may be that of its receivers.
 */
export function ofHost(end: PostEnd, isSilentToOthers: boolean): BreakerEnd {
  if (end === 'silent') return isSilentToOthers ? 'bad' : 'none';
  return end === 'none' ? end : 'good';
}

/** The meaning of an end for one sender at the host: a refusal, or silence, may concern only this sender. */
export function ofSender(end: PostEnd): BreakerEnd {
  if (end === 'none') return end;
  return end === 'answered' ? 'good' : 'bad';
}

/** The end of an attempt. */
export function postEndOf({ status, error }: { readonly status?: number; readonly error?: string }): PostEnd {
  if (status !== undefined) return busyStatuses.has(status) ? 'refused' : 'answered';
  return error?.startsWith('remote_') ? 'silent' : 'none';
}

function openBreaker(times: number, now: number): Breaker {
  return { kind: 'open', until: now + doubled(times, openTime), times };
}
