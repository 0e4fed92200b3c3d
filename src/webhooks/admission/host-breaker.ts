/** What is known by the last posts. `half-open`: one post tries whether it is back. Moments are milliseconds of a clock that never steps back. */
export type Breaker =
  | {
      readonly kind: 'closed';
      /** Since when posts are counted. */
      readonly since: number;
      readonly posts: number;
      readonly failures: number;
      readonly inARow: number;
    }
  | { readonly kind: 'open'; readonly until: number; readonly times: number }
  | { readonly kind: 'half-open'; readonly times: number };

/**
 * How a post ended. `refused`: somebody answers there, and has no time for us; `silent`: nobody answers; `none`: nothing was posted
 * after all.
 */
export type PostEnd = 'answered' | 'refused' | 'silent' | 'none';

/** What an end says to a breaker. */
export type BreakerEnd = 'good' | 'bad' | 'none';

const windowMs = 60_000;
const leastPosts = 20;
const mostInARow = 10;
const firstOpenMs = 5_000;
const longestOpenMs = 60_000;

/** Says that there is no time for whom we post for; any other answer is of the one receiver. */
const busyStatuses = new Set([429, 502, 503, 504]);

/** A host that nothing bad is known of. */
export function closedBreaker(now: number): Breaker {
  return { kind: 'closed', since: now, posts: 0, failures: 0, inARow: 0 };
}

/** What may go to a host now: anything, one post that tries it, or nothing. */
export function admission(breaker: Breaker, now: number): 'post' | 'probe' | 'nothing' {
  if (breaker.kind === 'closed') return 'post';
  return breaker.kind === 'open' && now >= breaker.until ? 'probe' : 'nothing';
}

/** A closed one opens after ten failures in a row, or when half of at least twenty posts of a minute failed. */
export function afterPost(breaker: Breaker, end: BreakerEnd, now: number): Breaker {
  // What was on its way when it opened tells nothing new.
  if (end === 'none' || breaker.kind !== 'closed') return breaker;
  const isOld = now - breaker.since > windowMs;
  const before = isOld ? { since: now, posts: 0, failures: 0 } : breaker;
  const failed = end === 'bad' ? 1 : 0;
  const [posts, failures] = [before.posts + 1, before.failures + failed];
  const inARow = failed ? breaker.inARow + 1 : 0;
  const isDown = inARow >= mostInARow || (posts >= leastPosts && 2 * failures >= posts);
  return isDown ? openBreaker(1, now) : { kind: 'closed', since: before.since, posts, failures, inARow };
}

/** Each time in a row it stays open twice as long, up to a minute. */
export function afterProbe(times: number, end: BreakerEnd, now: number): Breaker {
  if (end === 'good') return closedBreaker(now);
  return end === 'bad' ? openBreaker(times + 1, now) : { kind: 'open', until: now, times };
}

/** What an end says of the host, which others share: whoever answers is there. */
export function ofHost(end: PostEnd): BreakerEnd {
  if (end === 'none') return end;
  return end === 'silent' ? 'bad' : 'good';
}

/** What an end says of the host for one org: a path of its own may refuse it, and nobody else. */
export function ofGuest(end: PostEnd): BreakerEnd {
  if (end === 'answered') return 'good';
  return end === 'refused' ? 'bad' : 'none';
}

/** How a try ended. */
export function postEndOf({ status, error }: { readonly status?: number; readonly error?: string }): PostEnd {
  if (status !== undefined) return busyStatuses.has(status) ? 'refused' : 'answered';
  return error?.startsWith('remote_') ? 'silent' : 'none';
}

function openBreaker(times: number, now: number): Breaker {
  return { kind: 'open', until: now + Math.min(longestOpenMs, firstOpenMs * 2 ** Math.min(times - 1, 10)), times };
}
