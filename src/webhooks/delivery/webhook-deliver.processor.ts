import { Injectable } from '@nestjs/common';
import type { JobPayload } from '../../kernel/jobs.js';
import { HandlesJob, type JobHandler } from '../../platform/jobs/handles-job.decorator.js';
import { AttemptFailed, type JobFacts, type JobRun } from '../../platform/jobs/job-run.js';
import { DeliveryTrigger } from './delivery-trigger.js';
import { WebhookDeliverer } from './webhook-deliverer.js';

const deferredTexts = {
  full: '; the rest waits for a free place',
  down: '; the rest waits until the host is up',
  database: '; the rest waits for the database',
} as const;

/** Delivers the due deliveries of an enqueued configuration; the rows decide whether there are any. */
@Injectable()
@HandlesJob('webhook.deliver')
export class WebhookDeliverProcessor implements JobHandler<'webhook.deliver'> {
  constructor(
    private readonly deliverer: WebhookDeliverer,
    private readonly trigger: DeliveryTrigger,
  ) {}

  async handle(key: JobPayload<'webhook.deliver'>, job: JobRun): Promise<JobFacts> {
    if (job.byHand) await this.deliverer.makeDueNow(key);
    const { delivered, againMs, flaw, deferred } = await this.deliverer.deliverDue(key);
    if (againMs !== undefined) this.trigger.enqueueIn(againMs, key);
    const reason = deferred ? deferredTexts[deferred] : delivered || flaw ? '' : '; nothing is due';
    job.log(`task ${key.taskId}: ${delivered} delivered${reason}`);
    if (flaw === undefined) return { delivered };
    job.log(flaw);
    throw new AttemptFailed(flaw);
  }
}
