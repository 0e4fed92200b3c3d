import { RialtoError } from '../../kernel/errors.js';
import { LiveTask } from './live-task.js';
import type { TaskChanges } from './task-changes.js';
import type { TaskChange } from '../storage/task-writer.js';
import type { StoredTask } from '../task.types.js';

describe('a live task with a change that the database refuses', () => {
  const task = {
    id: 't',
    state: 'TASK_STATE_WORKING',
    statusAt: 0,
    seq: 2,
    epoch: 1,
    history: [],
    artifacts: [],
  } as unknown as StoredTask;
  const step = { now: 0, newId: () => 'id', maxWeight: 1_000_000 };

  const liveOn = (refusal: RialtoError) => {
    const changes: TaskChange[] = [];
    const commitAndNotify = (change: TaskChange): Promise<boolean> => {
      changes.push(change);
      return changes.length === 1 ? Promise.reject(refusal) : Promise.resolve(true);
    };
    const writes = { commitAndNotify, step: () => step, runHold: {} } as unknown as TaskChanges;
    return { live: LiveTask.claimed(writes, task), changes };
  };

  it('reverts to the committed task when the change can never be stored, and can be ended from there', async () => {
    const refusal = new RialtoError('internal');
    const { live, changes } = liveOn(refusal);
    live.apply({ status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: '\u0000' }] } } });
    await expect(live.save()).rejects.toBe(refusal);
    expect([live.refusal, live.task, live.atRest]).toEqual([refusal, task, false]);
    live.apply({ status: { state: 'TASK_STATE_FAILED' } });
    await live.save();
    expect(changes[1]).toMatchObject({ from: task, task: { state: 'TASK_STATE_FAILED', seq: 3 } });
    expect(changes[1]!.events).toHaveLength(1);
  });

  it('saves a later change after a save that had nothing to do', async () => {
    const { live, changes } = liveOn(new RialtoError('internal'));
    await live.save();
    live.apply({ status: { state: 'TASK_STATE_FAILED' } });
    await expect(live.save()).rejects.toMatchObject({ code: 'internal' });
    expect(changes).toHaveLength(1);
  });

  it('does not revert when the database is not available', async () => {
    const { live } = liveOn(new RialtoError('unavailable'));
    live.apply({ status: { state: 'TASK_STATE_COMPLETED' } });
    await expect(live.save()).rejects.toMatchObject({ code: 'unavailable' });
    expect(live.refusal).toBeUndefined();
  });
});
