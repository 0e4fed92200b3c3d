import { RialtoError, type ErrorCode } from '../../kernel/errors.js';
import {
  afterRun,
  emptyText,
  failureText,
  isLost,
  isPassing,
  lateText,
  pollPause,
  timeOfAttempts,
} from './continuation-plan.js';

const budget = { maxRemoteWorkMs: 600_000, maxAttempts: 6, runWaitMs: 10_000, pollMs: 2_000, rescheduleMs: 20_000 };

describe('pace and limits of a continuation', () => {
  it('AN-69 polls fast at first, then at the configured pace, with jitter', () => {
    const pauses = Array.from({ length: 10 }, (_, polls) => pollPause(polls, budget, 0.5));
    expect(pauses[0]).toBe(250);
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses.at(-1)).toBe(2_000);
    expect([pollPause(9, budget, 0), pollPause(9, budget, 1)]).toEqual([1_500, 2_500]);
  });

  it('C6 six attempts with the default settings cover the time that the remote task may take', () => {
    let elapsed = 25_000;
    let attempts = 0;
    for (;;) {
      const next = afterRun({ attempts, leftMs: budget.maxRemoteWorkMs - elapsed }, budget);
      if (next.kind === 'over') break;
      attempts += 1;
      elapsed += next.inMs + 10_000;
    }
    expect(attempts).toBeLessThanOrEqual(6);
    expect(elapsed / budget.maxRemoteWorkMs).toBeGreaterThan(0.95);
  });

  it('gives a stream the time of the attempts that are left', () => {
    expect(timeOfAttempts(6, budget)).toBe(0);
    expect(timeOfAttempts(5, budget)).toBe(250_000);
    expect(timeOfAttempts(0, budget)).toBe(20_000 + 40_000 + 80_000 + 160_000 + 2 * 240_000 + 6 * 10_000);
  });

  it('AN-66 ends the continuation at the first limit that is reached', () => {
    expect(afterRun({ attempts: 0, leftMs: 0 }, budget)).toEqual({ kind: 'over', why: 'time' });
    expect(afterRun({ attempts: 6, leftMs: 1 }, budget)).toEqual({ kind: 'over', why: 'attempts' });
    expect(afterRun({ attempts: 5, leftMs: 1 }, budget)).toEqual({ kind: 'again', inMs: 1 });
  });

  it.each([
    [{ attempts: 0, leftMs: 600_000 }, 20_000],
    [{ attempts: 1, leftMs: 600_000 }, 40_000],
    [{ attempts: 4, leftMs: 600_000 }, 240_000],
    [{ attempts: 0, leftMs: 5_000 }, 5_000],
    [{ attempts: 0, leftMs: 600_000, retryAfterMs: 90_000 }, 90_000],
    [{ attempts: 0, leftMs: 3_600_000, retryAfterMs: 86_400_000 }, 600_000],
    [{ attempts: 2, leftMs: 600_000, retryAfterMs: 1_000 }, 80_000],
  ])('resumes %j in %i ms', (spent, inMs) => {
    expect(afterRun(spent, budget)).toEqual({ kind: 'again', inMs });
  });

  it.each<[ErrorCode, Record<string, unknown> | undefined, boolean]>([
    ['remote_timeout', undefined, true],
    ['unavailable', undefined, true],
    ['remote_transport', undefined, true],
    ['remote_transport', { httpStatus: 401 }, true],
    ['remote_transport', { httpStatus: 429 }, true],
    ['remote_transport', { httpStatus: 503 }, true],
    ['remote_transport', { httpStatus: 508 }, true],
    ['remote_transport', { httpStatus: 403 }, false],
    ['remote_transport', { httpStatus: 404 }, false],
    ['remote_transport', { httpStatus: 410 }, false],
    ['remote_error', { remoteMessage: 'Invalid or expired A2A token' }, true],
    ['remote_error', { remoteMessage: 'Task not found' }, false],
    ['remote_task_failed', undefined, false],
    ['remote_invalid_response', undefined, false],
    ['denied', undefined, false],
    ['canceled', undefined, false],
  ])('AN-70 %s %j is transient: %s', (code, data, passes) => {
    expect(isPassing(new RialtoError(code, { data }))).toBe(passes);
  });

  it.each<[ErrorCode, Record<string, unknown>, boolean]>([
    ['remote_transport', { httpStatus: 404 }, true],
    ['remote_transport', { httpStatus: 410 }, true],
    ['remote_transport', { httpStatus: 403 }, false],
    ['remote_error', { remoteCode: -32_001, remoteMessage: 'Task not found' }, true],
    ['remote_error', { remoteCode: -32_001, remoteMessage: 'Invalid or expired A2A token' }, false],
    ['remote_error', { remoteCode: -32_002 }, false],
    ['remote_task_failed', { remoteCode: -32_001 }, false],
  ])('%s %j means that the task is lost: %s', (code, data, lost) => {
    expect(isLost(new RialtoError(code, { data }))).toBe(lost);
  });
});

describe('texts for users', () => {
  const ids = { code: 'remote_timeout', requestId: 'r-1', continuationId: 'c-1', taskId: 't-1' };

  it('AN-66 names the agent and the limit', () => {
    expect(lateText('agent weather', 'time', budget)).toBe(
      'The agent weather did not respond in time: it was still working after 10 minutes of remote work.',
    );
    expect(lateText('agent weather', 'attempts', budget)).toContain('after 6 attempts');
    expect(lateText('agent weather', 'time', { ...budget, maxRemoteWorkMs: 1_500 })).toContain('2 seconds');
  });

  it('AN-72 says that the agent sent no answer', () => {
    expect(emptyText('agent weather')).toBe('The agent weather finished its task without an answer.');
  });

  it('AN-73 keeps all ids and cuts the text to 500 characters', () => {
    expect(failureText('no', ids)).toBe(
      'no [code: remote_timeout; request: r-1; continuation: c-1; downstream task: t-1]',
    );
    const long = failureText('x'.repeat(2_000), { ...ids, taskId: 'y'.repeat(2_000) });
    expect(long).toHaveLength(500);
    expect(long).toContain('continuation: c-1');
    expect(long).toMatch(/y…\]$/);
    for (const before of ['', 'x']) expect(failureText(before + '😀'.repeat(700), ids).isWellFormed()).toBe(true);
  });
});
