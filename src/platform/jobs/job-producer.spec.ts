import type { Queue } from 'bullmq';
import type { JobName } from '../../kernel/jobs.js';
import type { Logger } from '../telemetry/logger.js';
import { JobProducer } from './job-producer.js';

it('F15 an enqueue ends within 50 ms, also when the queue does not answer', async () => {
  jest.useFakeTimers();
  try {
    const silent = { add: () => new Promise(() => undefined) } as unknown as Queue;
    const producer = new JobProducer(new Map<JobName, Queue>([['task.execute', silent]]), {} as Logger);
    const ended = jest.fn();
    void producer.tryEnqueue('task.execute', { taskId: 'x' }, { key: 'x' }).then(ended);
    await jest.advanceTimersByTimeAsync(49);
    expect(ended).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledWith(false);
  } finally {
    jest.useRealTimers();
  }
});
