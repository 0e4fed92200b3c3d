import { Inject, Injectable } from '@nestjs/common';
import { DueSweep } from '../../platform/jobs/due-work.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics, type SweepOutcome } from '../../platform/telemetry/metrics.js';
import type { DueTask } from '../storage/task-lease.store.js';
import { TaskClaimer } from './task-claimer.js';
import { TaskJobs } from './task-jobs.js';
import type { Begun } from './task-run.js';

/**
 * Milliseconds that the normal enqueue of a due task may take; a sweep before that would add a second job for nothing.
 */
const enqueueMs = 500;

/** Finds due tasks without a holder: a job was lost, a process died, or a lease expired. */
@Injectable()
@Sweeps('task.due')
export class TaskSweeper implements Sweeper {
  readonly everyMs = 1_000;
  private readonly due: DueSweep<DueTask>;

  constructor(claimer: TaskClaimer, jobs: TaskJobs, metrics: Metrics, @Inject(LOGGER) log: Logger) {
    this.due = new DueSweep<DueTask>(
      {
        kind: 'tasks',
        find: (limit) => claimer.findDue(limit, enqueueMs),
        keyOf: ({ id }) => id,
        isOrphan: ({ isOrphan }) => isOrphan,
        ring: ({ id }) => jobs.enqueue(id),
        run: async ({ id }) => outcomeOf(await claimer.beginTask(id)),
        isHeld: () => jobs.isHeld(),
      },
      metrics,
      log,
    );
  }

  sweep(): Promise<void> {
    return this.due.sweep();
  }
}

function outcomeOf(begun: Begun | undefined): SweepOutcome {
  if (!begun) return 'skipped';
  return begun.refusal ?? 'dispatched';
}
