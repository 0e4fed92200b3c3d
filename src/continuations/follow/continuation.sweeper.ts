import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { isPassing } from './continuation-plan.js';
import { ContinuationStore, type Orphan } from '../storage/continuation.store.js';
import { RemoteCancels } from './remote-cancels.js';

/** Same number as in agent-native (AN-76). */
const perSweep = 200;
/** The process that ends a task cancels its remote task at once. The sweeper waits this long before it takes over. */
const graceMs = 5_000;

/** Cancels remote tasks of tasks that ended here while the remote task still ran. */
@Injectable()
@Sweeps('continuation.orphans')
export class ContinuationSweeper implements Sweeper {
  readonly everyMs = 5_000;

  constructor(
    private readonly store: ContinuationStore,
    private readonly cancels: RemoteCancels,
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    const orphans = await this.store.takeOrphans(perSweep, graceMs);
    await Promise.all(orphans.map((orphan) => this.cancelOrphan(orphan)));
  }

  private async cancelOrphan(orphan: Orphan): Promise<void> {
    const { id, taskId, remoteTaskId, attempts } = orphan;
    try {
      await this.cancels.cancelRemote(orphan);
    } catch (err) {
      if (isPassing(err) && attempts < this.settings.A2A_CONTINUATION_MAX_ATTEMPTS) return;
      this.log.info({ err, continuationId: id, taskId }, 'cancel of a remote task failed');
      return this.store.close(taskId, remoteTaskId, 'failed', RialtoError.from(err).code);
    }
    await this.store.close(taskId, remoteTaskId, 'completed');
  }
}
