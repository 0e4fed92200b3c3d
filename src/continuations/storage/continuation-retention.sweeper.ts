import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { ContinuationStore } from './continuation.store.js';
import { RemotePushStore } from '../push/remote-push.store.js';
import { ThreadAnswerStore } from '../threads/thread-answer.store.js';

const batch = 1_000;
/** After this time the answer that names the remote task has arrived, and a deferred task was resumed. */
const pushStoredMs = 3_600_000;

/**
 * Deletes old pushes, and in batches the continuations and thread answers that ended longer ago than the retention of
 * tasks.
 */
@Injectable()
@Sweeps('continuation.retention')
export class ContinuationRetentionSweeper implements Sweeper {
  readonly everyMs = 60_000;

  constructor(
    private readonly store: ContinuationStore,
    private readonly answers: ThreadAnswerStore,
    private readonly pushes: RemotePushStore,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async sweep(): Promise<void> {
    await this.pushes.dropOld(pushStoredMs);
    const days = this.settings.RIALTO_TASK_RETENTION_DAYS;
    for (let dropped = batch; dropped === batch;) dropped = await this.store.dropEnded(days, batch);
    for (let dropped = batch; dropped === batch;) dropped = await this.answers.dropEnded(days, batch);
  }
}
