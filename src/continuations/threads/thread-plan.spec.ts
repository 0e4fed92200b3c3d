import { answerBody, mostTries, progressBody, verdictOf } from './thread-plan.js';

const ids = { id: 'mark', threadId: 'general' };
const task = (state: string, parts: object[] = [], statusParts: object[] = []): never =>
  ({
    id: 'task',
    agentName: 'far',
    state,
    artifacts: [{ artifactId: 'a', parts }],
    ...(statusParts.length > 0 && { statusMessage: { parts: statusParts } }),
  }) as never;

const now = Date.parse('2026-01-01T00:00:00Z');
const verdict = (attempt: number, end: Parameters<typeof verdictOf>[1], chance: number) =>
  verdictOf(attempt, end, { now, chance });

describe('plan of a thread answer', () => {
  it('AN-75 ends with a 2xx response, and retries for three quarters of an hour at most', () => {
    expect([200, 201, 204].map((status) => verdict(1, { status }, 0.5))).toEqual(Array(3).fill({ kind: 'received' }));
    expect(verdict(1, { status: 410 }, 0.5)).toEqual({ kind: 'dead', why: 'gone' });
    let ms = 0;
    for (let attempt = 1; attempt < mostTries; attempt++) {
      const next = verdict(attempt, { status: 302 }, 0.999);
      expect(next.kind).toBe('again');
      ms += (next as { inMs: number }).inMs;
    }
    expect(ms).toBeLessThan(52 * 60_000);
    expect(verdict(mostTries, {}, 0.5)).toEqual({ kind: 'dead', why: 'exhausted' });
    expect(verdict(mostTries, { status: 200 }, 0.5)).toEqual({ kind: 'received' });
  });

  it('honors Retry-After, in seconds or as a date, up to twice the planned pause', () => {
    const date = new Date(now + 7_000).toUTCString();
    expect(verdict(2, { status: 429, retryAfter: date }, 0.5)).toEqual({ kind: 'again', inMs: 7_000 });
    expect(verdict(1, {}, 0)).toEqual({ kind: 'again', inMs: 800 });
    expect(verdict(2, { status: 429, retryAfter: '8' }, 0.5)).toEqual({ kind: 'again', inMs: 8_000 });
    expect(verdict(2, { status: 429, retryAfter: '3600' }, 0.5)).toEqual({ kind: 'again', inMs: 10_000 });
    expect(verdict(2, { status: 429, retryAfter: 'soon' }, 0.5)).toEqual({ kind: 'again', inMs: 5_000 });
  });

  it('sends the text of the agent, cut to 16,000 characters', () => {
    const head = { id: 'mark', thread: 'general', taskId: 'task', agent: 'far' };
    expect(answerBody(task('TASK_STATE_COMPLETED', [{ text: 'one' }, { data: 1 }], [{ text: 'two' }]), ids)).toEqual({
      ...head,
      type: 'answer',
      state: 'completed',
      text: 'one\ntwo',
    });
    expect(answerBody(task('TASK_STATE_COMPLETED', [{ data: { n: 1 } }]), ids).text).toBe('{"n":1}');
    const pieces = [{ text: 'on' }, { text: 'e' }];
    expect(answerBody(task('TASK_STATE_COMPLETED', pieces, [{ text: 'one' }]), ids).text).toBe('one');
    expect(answerBody(task('TASK_STATE_CANCELED'), ids).text).toBe('The task ended as canceled.');
    expect(answerBody(task('TASK_STATE_COMPLETED', [{ text: 'x'.repeat(20_000) }]), ids).text).toHaveLength(16_000);
    expect(progressBody(task('TASK_STATE_WORKING', [{ text: 'part' }]), ids)).toEqual({
      ...head,
      type: 'progress',
      state: 'working',
      text: 'The agent far still works on it.',
    });
    expect(progressBody(task('TASK_STATE_WORKING', [], [{ text: 'half' }]), ids).text).toBe('half');
  });
});
