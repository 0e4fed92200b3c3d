import { Inject, Injectable } from '@nestjs/common';
import { DueSweep } from '../../platform/jobs/due-work.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { unseenRun } from '../../platform/jobs/job-run.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import type { DueDelivery } from './delivery.store.js';
import { jobKeyOf, DeliveryTrigger } from './delivery-trigger.js';
import { WebhookDeliverProcessor } from './webhook-deliver.processor.js';
import { WebhookDeliverer } from './webhook-deliverer.js';

/** Finds configurations with due deliveries: after a retry delay, a lost job, or a killed process. */
@Injectable()
@Sweeps('webhook.due')
export class WebhookSweeper implements Sweeper {
  readonly everyMs = 1_000;
  private readonly due: DueSweep<DueDelivery>;

  constructor(
    deliverer: WebhookDeliverer,
    processor: WebhookDeliverProcessor,
    trigger: DeliveryTrigger,
    metrics: Metrics,
    @Inject(LOGGER) log: Logger,
  ) {
    this.due = new DueSweep<DueDelivery>(
      {
        kind: 'deliveries',
        find: (limit) => deliverer.findDue(limit),
        keyOf: jobKeyOf,
        isOrphan: ({ isOrphan }) => isOrphan,
        ring: (key) => trigger.enqueue(key),
        run: async (key) => void (await processor.handle(key, unseenRun)),
        isHeld: () => trigger.isPaused(),
      },
      metrics,
      log,
    );
  }

  sweep(): Promise<void> {
    return this.due.sweep();
  }
}
