import { Injectable } from '@nestjs/common';
import type { TaskId } from '../../kernel/ids.js';
import { mostTasksOfJob } from '../../kernel/jobs.js';
import { JobProducer } from '../../platform/jobs/job-producer.js';
import { QueueState } from '../../platform/jobs/queue-state.js';
import { TaskLeases } from '../storage/task-lease.store.js';

/** Fewer tasks that arrive together get a job each, so that the board shows them one by one. */
const fewestTasksOfJob = 4;

/**
 * Queues jobs that make workers run tasks. Tasks that arrive while the queue takes a job share the next one: a job
 * costs more than the run of a short task.
 */
@Injectable()
export class TaskJobs {
  private readonly arrivals: Arrival[] = [];
  private isAdding = false;

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
    this.arrivals.push({ taskId, line });
    if (!this.isAdding) void this.addArrivals();
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

  private async addArrivals(): Promise<void> {
    this.isAdding = true;
    while (this.arrivals.length > 0) await Promise.all(this.jobsFor(this.arrivals.splice(0, mostTasksOfJob)));
    this.isAdding = false;
  }

  private jobsFor(arrivals: readonly Arrival[]): Promise<boolean>[] {
    const byLine = new Map<number, TaskId[]>();
    for (const { taskId, line } of arrivals) byLine.set(line, [...(byLine.get(line) ?? []), taskId]);
    return [...byLine].flatMap(([line, taskIds]) =>
      taskIds.length < fewestTasksOfJob
        ? taskIds.map((taskId) => this.enqueue(taskId, line))
        : [this.producer.tryEnqueue('task.execute', { taskIds }, { line })],
    );
  }
}

/** A stored task that a worker has to run. */
interface Arrival {
  readonly taskId: TaskId;
  readonly line: number;
}
