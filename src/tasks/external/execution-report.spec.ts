import type { ExecutionEvent } from './execution-events.js';
import { applyReport, hasReached, isWokenEarly, unseen } from './execution-report.js';
import { openTask, type Step } from '../lifecycle/task.lifecycle.js';
import type { StoredTask } from '../task.types.js';

const step: Step = { now: 1_000, newId: () => 'new', maxWeight: 1_000 };
const seed = {
  id: 't' as StoredTask['id'],
  orgId: 'o' as StoredTask['orgId'],
  agentId: 'a' as StoredTask['agentId'],
  agentName: 'svc',
  contextId: 'c',
  principal: { kind: 'user', id: 'bob', role: 'member', groups: [] } as const,
  depth: 0,
};
const fresh = openTask(seed, { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }, step).task;
const apply = (task: StoredTask, ...events: ExecutionEvent[]) => applyReport(task, { events }, step);
const artifact = (id: string): ExecutionEvent => ({ id, type: 'artifact', artifact: { parts: [{ text: id }] } });
const heartbeat: ExecutionEvent = { id: 'h', type: 'heartbeat' };

describe('a report', () => {
  it('sets a submitted task to working, for any first event', () => {
    const { events } = apply(fresh, artifact('a'), { id: 'b', type: 'complete' });
    expect(events.map(({ seq, body }) => [seq, Object.keys(body)[0]])).toEqual([
      [2, 'statusUpdate'],
      [3, 'artifactUpdate'],
      [4, 'statusUpdate'],
    ]);
    expect(apply(fresh, { id: 'p', type: 'progress' }).events).toHaveLength(1);
    expect(apply(fresh, heartbeat).events).toEqual([]);
  });

  it('is recognised as a repeat by its id, which a task of an earlier version may hold itself', () => {
    const events = [artifact('a'), artifact('b'), artifact('c'), artifact('c'), heartbeat];
    expect(unseen({ ...fresh, memo: { seen: ['a'] } }, events, ['b'])).toEqual([artifact('c'), heartbeat]);
  });

  it('does not by itself confirm that a message has arrived', () => {
    expect(hasReached(apply(fresh, artifact('a')).task)).toBe(false);
    const { task } = applyReport(fresh, { events: [], reached: 1 }, step);
    expect([hasReached(task), hasReached(apply(task, artifact('a')).task)]).toEqual([true, true]);
    const answered = { ...task, history: [...task.history, task.history[0]!] };
    expect(hasReached(answered)).toBe(false);
  });

  it('gives a service five minutes from the arrival of the message, also when the task is due before', () => {
    const { task } = applyReport(fresh, { events: [], reached: 1 }, { ...step, now: 1_000_000 });
    const times = [1_000_000, 1_042_000, 1_299_999, 1_300_000, 9_000_000, 999_999];
    expect(times.map((now) => isWokenEarly(task, now))).toEqual([true, true, true, false, false, false]);
    expect(isWokenEarly({ ...fresh, memo: { reached: 1 } }, 1_000_000)).toBe(false);
  });

  it('(N14) AN-22 gives the reason of a failure without the credentials in it', () => {
    const error = 'no login with password=canary-1 and Authorization: Bearer sk-live-canary-2';
    const message = { parts: [{ text: error }, { data: { code: 7 } }] };
    for (const words of [{ error }, { text: error }, { message }] as const) {
      const { task, events } = apply(fresh, { id: 'f', type: 'fail', ...words });
      expect(JSON.stringify([task.statusMessage, events])).not.toContain('canary');
      expect(task.statusMessage?.parts[0]).toEqual({ text: expect.stringMatching(/^no login with password=/) });
    }
  });

  it('is refused after the end, and progress is refused after a question', () => {
    const end: ExecutionEvent = { id: 'z', type: 'fail', error: 'no' };
    const ended = apply(fresh, end).task;
    expect(ended.statusMessage?.parts).toEqual([{ text: 'no' }]);
    expect(() => apply(ended, heartbeat)).toThrow('the task is failed');
    const asked = apply(fresh, { id: 'q', type: 'ask', text: '?', kind: 'text' }).task;
    expect(asked.statusMessage).toMatchObject({ parts: [{ text: '?' }], metadata: { kind: 'text' } });
    expect(() => apply(asked, { id: 'p', type: 'progress' })).toThrow('the task is input-required');
    expect(apply(asked, artifact('a'), end).task.state).toBe('TASK_STATE_FAILED');
  });
});
