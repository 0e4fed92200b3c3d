import { Injectable } from '@nestjs/common';
import { jobs, type JobPayload } from '../../kernel/jobs.js';
import { Semaphore } from '../../kernel/semaphore.js';
import { HandlesJob, type JobHandler } from '../../platform/jobs/handles-job.decorator.js';
import { AttemptFailed, requireSuccess, type JobFacts, type JobRun } from '../../platform/jobs/job-run.js';
import type { ConfigKey } from './delivery.store.js';
import { DeliveryTrigger } from './delivery-trigger.js';
import { WebhookDeliverer, type Round } from './webhook-deliverer.js';

const deferredTexts = {
  full: '; the rest waits for a free place',
  down: '; the rest waits until the host is up',
  database: '; the rest waits for the database',
} as const;

/** Delivers the due deliveries of enqueued configurations; the rows decide whether there are any. */
@Injectable()
@HandlesJob('webhook.deliver')
export class WebhookDeliverProcessor implements JobHandler<'webhook.deliver'> {
  /** Jobs with several configurations run at most as many of them at once as jobs with one. */
  private readonly places = new Semaphore(jobs['webhook.deliver'].concurrency);

  constructor(
    private readonly deliverer: WebhookDeliverer,
    private readonly trigger: DeliveryTrigger,
  ) {}

  handle(payload: JobPayload<'webhook.deliver'>, job: JobRun): Promise<JobFacts> {
    return 'configs' in payload ? this.deliverMany(payload.configs, job) : this.deliverOne(payload, job);
  }

  private async deliverOne(key: ConfigKey, job: JobRun): Promise<JobFacts> {
    const { delivered, flaw, deferred } = await this.deliver(key, job);
    const reason = deferred ? deferredTexts[deferred] : delivered || flaw ? '' : '; nothing is due';
    job.log(`task ${key.taskId}: ${delivered} delivered${reason}`);
    if (flaw === undefined) return { delivered };
    job.log(flaw);
    throw new AttemptFailed(flaw);
  }

  private async deliverMany(keys: readonly ConfigKey[], job: JobRun): Promise<JobFacts> {
    const ends = await Promise.allSettled(keys.map((key) => this.places.run(() => this.deliver(key, job))));
    const rounds = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
    const delivered = rounds.reduce((sum, round) => sum + round.delivered, 0);
    const flaws = rounds.flatMap(({ flaw }) => flaw ?? []);
    job.log(`${keys.length} configurations: ${delivered} delivered, ${flaws.length} of them failed`);
    requireSuccess(ends, flaws);
    return { configurations: keys.length, delivered };
  }

  private async deliver(key: ConfigKey, job: JobRun): Promise<Round> {
    if (job.byHand) await this.deliverer.makeDueNow(key);
    const round = await this.deliverer.deliverDue(key);
    if (round.againMs !== undefined) this.trigger.enqueueIn(round.againMs, key);
    return round;
  }
}
