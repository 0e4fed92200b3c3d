import { progressOf } from './progress-update.js';

describe('the progress of a tool as updates of its task', () => {
  let now = 0;
  const newReporter = () => progressOf({ elapsed: () => now });

  it('shows the progress, with the text of the server when there is one', () => {
    const next = newReporter();
    expect(next({ progress: 1, total: 4, message: 'reading' })).toEqual({
      status: { state: 'TASK_STATE_WORKING', message: { parts: [{ text: 'reading' }] } },
      metadata: { progress: 1, total: 4 },
    });
    now += 1_000;
    expect(next({ progress: 2, total: 4 })).toMatchObject({ status: { message: { parts: [{ text: '2 of 4' }] } } });
    now += 1_000;
    expect(next({ progress: 3 })).toMatchObject({ status: { message: { parts: [{ text: '3' }] } } });
    now += 1_000;
    expect(next({ message: 'no figure' })).toBeUndefined();
  });

  it('is reported once a second, and at most a hundred times', () => {
    const next = newReporter();
    const count = (times: number, everyMs: number): number =>
      Array.from({ length: times }, (_, progress) => {
        now += everyMs;
        return next({ progress });
      }).filter(Boolean).length;
    expect(count(20, 100)).toBe(2);
    expect(count(500, 1_000)).toBe(98);
  });
});
