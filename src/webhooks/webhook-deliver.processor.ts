import { Injectable } from '@nestjs/common';
import type { JobPayload } from '../kernel/jobs.js';
import { HandlesJob, type JobHandler } from '../platform/jobs/handles-job.decorator.js';
import { AttemptFailed, type JobRun } from '../platform/jobs/job-run.js';
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

  async handle(key: JobPayload<'webhook.deliver'>, job: JobRun): Promise<void> {
    if (job.byHand) await this.deliverer.hurry(key);
    const { delivered, againMs, flaw } = await this.deliverer.run(key);
    if (againMs !== undefined) this.bell.ringIn(againMs, key);
    job.progress({ delivered, failed: flaw === undefined ? 0 : 1 });
    job.log(`task ${key.taskId}: ${delivered} delivered${delivered + (flaw ? 1 : 0) === 0 ? '; nothing is due' : ''}`);
    if (flaw === undefined) return;
    job.log(flaw);
    throw new AttemptFailed(flaw);
  }
}
