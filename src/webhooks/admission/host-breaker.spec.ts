import {
  admission,
  afterPost,
  afterProbe,
  closedBreaker,
  ofSender,
  ofHost,
  postEndOf,
  type Breaker,
  type BreakerEnd,
  type PostEnd,
} from './host-breaker.js';

const after = (ends: readonly BreakerEnd[], from = closedBreaker(0), everyMs = 100): Breaker =>
  ends.reduce((breaker, end, index) => afterPost(breaker, end, index * everyMs), from);
const failed = (count: number): BreakerEnd[] => Array<BreakerEnd>(count).fill('bad');
const alternating = (count: number): BreakerEnd[] =>
  Array.from({ length: count }, (_, index) => (index % 2 === 0 ? 'bad' : 'good'));

describe('the breaker of a host', () => {
  it('opens after ten failures in a row, not after nine', () => {
    expect(after(failed(9)).kind).toBe('closed');
    expect(after(failed(10)).kind).toBe('open');
    expect(after(failed(9).concat('good', failed(5))).kind).toBe('closed');
  });

  it('opens when half of twenty posts within a minute failed, but not of nineteen, and not over a longer time', () => {
    expect(after(alternating(19)).kind).toBe('closed');
    expect(after(alternating(20)).kind).toBe('open');
    expect(after(alternating(40), closedBreaker(0), 4_000).kind).toBe('closed');
  });

  it('admits nothing while it is open, then one probe', () => {
    const open = after(failed(10), closedBreaker(0), 0);
    expect(open).toEqual({ kind: 'open', until: 5_000, times: 1 });
    expect([4_999, 5_000].map((now) => admission(open, now))).toEqual(['nothing', 'probe']);
    expect(admission({ kind: 'half-open', times: 1 }, 9_999)).toBe('nothing');
    expect(admission(closedBreaker(0), 1)).toBe('post');
  });

  it('opens for twice as long each time in a row, up to a minute, and closes with the first answer', () => {
    const until = [1, 2, 3, 4, 9].map((times) => (afterProbe(times, 'bad', 0) as { until: number }).until);
    expect(until).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
    expect(afterProbe(3, 'good', 7)).toEqual(closedBreaker(7));
    expect(afterProbe(3, 'none', 7)).toEqual({ kind: 'open', until: 7, times: 3 });
  });

  it('ignores posts that were under way when it opened', () => {
    const open: Breaker = { kind: 'open', until: 5, times: 1 };
    for (const end of ['good', 'bad', 'none'] as const) expect(afterPost(open, end, 9)).toBe(open);
  });

  it.each([
    [{ status: 200 }, 'answered'],
    [{ status: 301 }, 'answered'],
    [{ status: 410 }, 'answered'],
    [{ status: 500, error: 'status_500' }, 'answered'],
    [{ status: 429, error: 'status_429' }, 'refused'],
    [{ status: 503, error: 'status_503' }, 'refused'],
    [{ error: 'remote_timeout' }, 'silent'],
    [{ error: 'remote_transport' }, 'silent'],
    [{ error: 'url_not_allowed' }, 'none'],
    [{ error: 'internal' }, 'none'],
  ] as const)('maps %j to %s: orgs share the host, so only results about the host count', (result, end) => {
    expect(postEndOf(result)).toBe(end);
  });

  it.each<[PostEnd, BreakerEnd, BreakerEnd]>([
    ['answered', 'good', 'good'],
    ['refused', 'good', 'bad'],
    ['silent', 'bad', 'bad'],
    ['none', 'none', 'none'],
  ])('%s counts as %s for the host of all orgs, and as %s for this sender at it', (end, host, senderAtHost) => {
    expect([ofHost(end, true), ofSender(end)]).toEqual([host, senderAtHost]);
  });

  it('silence towards one org alone does not count for the others', () => {
    expect(ofHost('silent', false)).toBe('none');
  });
});
