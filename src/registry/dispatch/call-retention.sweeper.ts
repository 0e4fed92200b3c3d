import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { DispatchStore } from './dispatch.store.js';

/**
 * Ends calls of killed processes, so that they do not count as load for good, and deletes ended calls after their
 * retention time.
 */
@Injectable()
@Sweeps('call.retention')
export class CallRetentionSweeper implements Sweeper {
  readonly everyMs = 60_000;

  constructor(
    private readonly dispatches: DispatchStore,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async sweep(): Promise<void> {
    await this.dispatches.endAbandoned();
    await this.dispatches.dropOld(this.settings.RIALTO_TASK_RETENTION_DAYS);
  }
}
