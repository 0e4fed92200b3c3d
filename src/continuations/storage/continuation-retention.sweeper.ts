import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { ContinuationStore } from './continuation.store.js';
import { ThreadAnswerStore } from '../threads/thread-answer.store.js';

const batch = 1_000;

/** Deletes continuations and thread answers that ended longer ago than the retention of tasks, in batches. */
@Injectable()
@Sweeps('continuation.retention')
export class ContinuationRetentionSweeper implements Sweeper {
  readonly everyMs = 60_000;

  constructor(
    private readonly store: ContinuationStore,
    private readonly answers: ThreadAnswerStore,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async sweep(): Promise<void> {
    const days = this.settings.RIALTO_TASK_RETENTION_DAYS;
    for (let dropped = batch; dropped === batch;) dropped = await this.store.dropEnded(days, batch);
    for (let dropped = batch; dropped === batch;) dropped = await this.answers.dropEnded(days, batch);
  }
}
