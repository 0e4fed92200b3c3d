import { Injectable } from '@nestjs/common';
import type { JobPayload } from '../kernel/jobs.js';
import { HandlesJob, type JobHandler } from '../platform/jobs/handles-job.decorator.js';
import { WebhookBell } from './webhook-bell.js';
import { WebhookDeliverer } from './webhook-deliverer.js';

/** Delivers what is due of a configuration that the queue rang for; the rows say whether there is anything. */
@Injectable()
@HandlesJob('webhook.deliver')
export class WebhookDeliverProcessor implements JobHandler<'webhook.deliver'> {
  constructor(
    private readonly deliverer: WebhookDeliverer,
    private readonly bell: WebhookBell,
  ) {}

  async handle(key: JobPayload<'webhook.deliver'>): Promise<void> {
    const againMs = await this.deliverer.run(key);
    if (againMs !== undefined) this.bell.ringIn(againMs, key);
  }
}
