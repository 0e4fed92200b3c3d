import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { TaskLeases } from '../storage/task-lease.store.js';
import { TaskEnder } from './task-ender.js';
import { failure } from './task-run.js';

const perSweep = 200;

/** Fails tasks that were queued or running for too long (AN-57). They are not retried. */
@Injectable()
@Sweeps('task.lifetime')
export class TaskLifetimeSweeper implements Sweeper {
  readonly everyMs: number;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly leases: TaskLeases,
    private readonly ender: TaskEnder,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    const shortest = Math.min(settings.A2A_QUEUED_LIFETIME_MAX_MS, settings.A2A_PROCESSING_LIFETIME_MAX_MS);
    this.everyMs = Math.min(10_000, Math.max(500, shortest / 4));
  }

  async sweep(): Promise<void> {
    const { A2A_QUEUED_LIFETIME_MAX_MS: queued, A2A_PROCESSING_LIFETIME_MAX_MS: working } = this.settings;
    const overdue = await this.leases.findOverdue({ queued, working }, perSweep);
    for (const { id, state } of overdue) {
      const text =
        state === 'submitted'
          ? `the task waited in the queue for more than ${seconds(queued)}`
          : `the task ran for more than ${seconds(working)}`;
      try {
        await this.ender.endTask(id, failure(new RialtoError('remote_timeout', { message: text })));
      } catch (err) {
        this.log.debug({ err, taskId: id }, 'could not fail an overdue task; it may have ended meanwhile');
      }
    }
  }
}

function seconds(ms: number): string {
  return ms < 120_000 ? `${ms / 1_000} seconds` : `${ms / 60_000} minutes`;
}
