import { RialtoError } from '../../kernel/errors.js';
import type { TaskRun } from '../executor.port.js';
import type { LiveTask } from '../lifecycle/live-task.js';
import { ActiveRun } from './task-run.js';

describe('a run with an executor that throws', () => {
  const runOf = async (error: unknown) => {
    const applied: unknown[] = [];
    const troubles: unknown[] = [];
    const live = {
      isStored: true,
      atRest: false,
      lost: false,
      apply: (update: unknown) => void applied.push(update),
      save: () => Promise.resolve(),
    };
    const execute = async function* (): AsyncGenerator<never, void> {
      yield* [];
      await Promise.resolve();
      throw error;
    };
    const options = { saves: true, onTrouble: (trouble: unknown) => void troubles.push(trouble) };
    await new ActiveRun(live as unknown as LiveTask, { execute }, {} as Omit<TaskRun, 'signal'>, options).ended;
    return { applied, troubles };
  };

  it('ends its task when the work fails', async () => {
    const { applied, troubles } = await runOf(new RialtoError('remote_transport', { message: 'the connection broke' }));
    expect(applied).toEqual([{ status: expect.objectContaining({ state: 'TASK_STATE_FAILED' }) }]);
    expect(troubles).toEqual([]);
  });

  it('leaves its task open for the next run when the database is not available', async () => {
    const away = new RialtoError('unavailable', { message: 'the database is not available' });
    expect(await runOf(away)).toEqual({ applied: [], troubles: [away] });
  });
});
