import { Injectable } from '@nestjs/common';
import type { TaskId } from '../../kernel/ids.js';
import { Arrivals } from '../../platform/jobs/arrivals.js';
import { JobProducer } from '../../platform/jobs/job-producer.js';
import { QueueState } from '../../platform/jobs/queue-state.js';
import { TaskLeases } from '../storage/task-lease.store.js';

/** Queues jobs that make workers run tasks. */
@Injectable()
export class TaskJobs {
  /** Tasks that were just stored, by the priority of their jobs. */
  private readonly lines: Arrivals<TaskId>[] = [];

  constructor(
    private readonly leases: TaskLeases,
    private readonly producer: JobProducer,
    private readonly queues: QueueState,
  ) {}

  /**
   * Queues the run of a task that was just stored, alone or together with others; the sweeper finds a task that the
   * queue did not accept.
   * @param line priority of the job, lowest first.
   */
  enqueueNew(taskId: TaskId, line: number): void {
    (this.lines[line] ??= this.arrivalsOf(line)).add(taskId);
  }

  /** Queues the run of a task, unless a job of its own waits already. Returns true when the queue accepted the job. */
  enqueue(taskId: TaskId, line = 0): Promise<boolean> {
    return this.producer.tryEnqueue('task.execute', { taskId }, { key: taskId, line });
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

  private arrivalsOf(line: number): Arrivals<TaskId> {
    return new Arrivals({
      addOne: (taskId) => this.enqueue(taskId, line),
      addMany: (taskIds) => this.producer.tryEnqueue('task.execute', { taskIds: [...taskIds] }, { line }),
    });
  }
}
