import { randomUUID } from 'node:crypto';
import type { TaskId } from '../../kernel/ids.js';
import type { JobProducer } from '../../platform/jobs/job-producer.js';
import type { QueueState } from '../../platform/jobs/queue-state.js';
import type { TaskLeases } from '../storage/task-lease.store.js';
import { TaskJobs } from './task-jobs.js';

/** A queue that takes a job only when told. */
class SlowQueue {
  readonly jobs: { taskId?: string; taskIds?: string[]; line: number; key?: string }[] = [];
  private readonly takes: (() => void)[] = [];

  readonly tryEnqueue = (_: string, payload: object, how: { key?: string; line?: number }): Promise<boolean> => {
    this.jobs.push({ ...payload, line: 0, ...how });
    return new Promise((resolve) => this.takes.push(() => resolve(true)));
  };

  async take(): Promise<void> {
    for (const take of this.takes.splice(0)) take();
    await new Promise(setImmediate);
  }
}

const taskIds = (count: number): TaskId[] => Array.from({ length: count }, () => randomUUID() as TaskId);

describe('jobs for new tasks', () => {
  let queue: SlowQueue;
  let jobs: TaskJobs;

  beforeEach(() => {
    queue = new SlowQueue();
    jobs = new TaskJobs({} as TaskLeases, queue as unknown as JobProducer, {} as QueueState);
  });

  it('one that arrives alone has its own, at once', () => {
    const [id] = taskIds(1);
    jobs.enqueueNew(id!, 0);
    expect(queue.jobs).toEqual([{ taskId: id, line: 0, key: id }]);
  });

  it('a few that arrive while the queue takes a job have one each', async () => {
    const ids = taskIds(4);
    for (const id of ids) jobs.enqueueNew(id, 0);
    expect(queue.jobs).toHaveLength(1);
    await queue.take();
    expect(queue.jobs.map(({ taskId }) => taskId)).toEqual(ids);
  });

  it('many share one job for each line, with at most 100 tasks', async () => {
    const [first, ...others] = taskIds(182);
    jobs.enqueueNew(first!, 0);
    for (const [index, id] of others.entries()) jobs.enqueueNew(id, index < 50 ? 0 : 1);
    await queue.take();
    await queue.take();
    expect(queue.jobs).toEqual([
      { taskId: first, line: 0, key: first },
      { taskId: others[50], line: 1, key: others[50] },
      { taskIds: others.slice(0, 50), line: 0 },
      { taskIds: others.slice(51, 151), line: 1 },
      { taskIds: others.slice(151), line: 1 },
    ]);
    await queue.take();
    const [late] = taskIds(1);
    jobs.enqueueNew(late!, 0);
    expect(queue.jobs.at(-1)).toMatchObject({ taskId: late });
  });

  it('one job for a task that is found again, however often', () => {
    const [id] = taskIds(1);
    void jobs.enqueue(id!);
    void jobs.enqueue(id!);
    expect(queue.jobs.map(({ key }) => key)).toEqual([id, id]);
  });
});
