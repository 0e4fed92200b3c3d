import { Injectable } from '@nestjs/common';
import type { TaskId } from '../../kernel/ids.js';
import { JobProducer } from '../../platform/jobs/job-producer.js';
import { QueueState } from '../../platform/jobs/queue-state.js';
import { TaskLeases } from '../storage/task-lease.store.js';

/** Queues jobs that make workers run tasks. */
@Injectable()
export class TaskJobs {
  constructor(
    private readonly leases: TaskLeases,
    private readonly producer: JobProducer,
    private readonly queues: QueueState,
  ) {}

  /**
   * Queues the run of a task. Returns true when the queue accepted the job; otherwise the sweeper finds the task.
   * @param line priority of the job, lowest first.
   */
  enqueue(taskId: TaskId, line = 0): Promise<boolean> {
    return this.producer.tryEnqueue('task.execute', { taskId }, taskId, line);
  }

  /** Queues the run of a task that is due and has no holder. Returns true when it was. */
  async wake(id: TaskId): Promise<boolean> {
    const isWaiting = await this.leases.isWaiting(id);
    if (isWaiting) void this.enqueue(id);
    return isWaiting;
  }

  /** Like `wake`, also for a deferred task. */
  async wakeEarly(id: TaskId): Promise<boolean> {
    await this.leases.makeDueNow(id);
    return this.wake(id);
  }

  /** True while an operator has paused the queue. */
  isHeld(): Promise<boolean> {
    return this.queues.isHeld('task.execute');
  }
}
