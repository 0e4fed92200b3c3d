import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { IdempotencyStore } from '../storage/idempotency.store.js';
import { TaskRetentionStore } from '../storage/task-retention.store.js';

/** Deletes ended tasks past their retention with their log and keys, oldest first, in batches. */
@Injectable()
@Sweeps('task.retention')
export class TaskRetentionSweeper implements Sweeper {
  readonly everyMs = 60_000;

  constructor(
    private readonly tasks: TaskRetentionStore,
    private readonly keys: IdempotencyStore,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async sweep(): Promise<void> {
    const days = this.settings.RIALTO_TASK_RETENTION_DAYS;
    for (let mayHaveMore = true; mayHaveMore;) mayHaveMore = await this.tasks.deleteBatch(days);
    await this.keys.deleteOldAnswers(days);
  }
}
