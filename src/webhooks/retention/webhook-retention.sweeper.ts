import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { WebhookRetentionStore } from './webhook-retention.store.js';

/**
 * Deletes data past the retention of tasks: deliveries with their attempts, and configurations of tasks that are gone
 * or ended.
 */
@Injectable()
@Sweeps('webhook.retention')
export class WebhookRetentionSweeper implements Sweeper {
  readonly everyMs = 60_000;

  constructor(
    private readonly store: WebhookRetentionStore,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async sweep(): Promise<void> {
    const { RIALTO_TASK_RETENTION_DAYS: days } = this.settings;
    await this.store.dropDeliveries(days);
    await this.store.dropConfigs(days);
  }
}
