import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { DeliveryStore, type Claimed } from './delivery.store.js';
import { postEndOf, type PostEnd } from '../admission/host-breaker.js';
import { DeliveryAdmission, type Deferral } from '../admission/delivery-admission.js';
import { jobKeyOf, DeliveryTrigger } from './delivery-trigger.js';
import { WebhookPost, type Post, type Posted } from './webhook-post.js';

/** Share of an org's posts that one sender may use, so that hosts that do not answer leave places for other senders. */
const shareOfSender = 0.75;

/** Sends a post when its host may be posted to; otherwise defers the delivery, as if it had not been claimed. */
@Injectable()
export class AdmittedPost {
  private readonly admission: DeliveryAdmission;

  constructor(
    private readonly post: WebhookPost,
    private readonly deliveries: DeliveryStore,
    private readonly trigger: DeliveryTrigger,
    private readonly metrics: Metrics,
    @Inject(SETTINGS) { RIALTO_WEBHOOK_MAX_PER_HOST: perHost, RIALTO_WEBHOOK_MAX_PER_ORG: perOrg }: Settings,
  ) {
    const perSender = Math.max(1, Math.floor(perOrg * shareOfSender));
    this.admission = new DeliveryAdmission({ perHost, perOrg, perSender });
    metrics.reads(metrics.webhookBreakersOpen, () => this.admission.openBreakers);
    metrics.reads(metrics.webhooksWaiting, () => this.admission.waiting);
  }

  /** @see DeliveryAdmission.saturated */
  get saturated(): string[] {
    return this.admission.saturated;
  }

  async send(claimed: Claimed, post: Post): Promise<Posted | Deferral> {
    const { taskId, configId, orgId: org, sender } = claimed;
    const key = { taskId, configId };
    const request = { host: new URL(post.config.url).origin, org, sender, key: jobKeyOf(key) };
    const answer = await this.admission.enter(request);
    if (answer.kind === 'deferred') {
      this.metrics.webhooksPutOff.inc({ why: answer.why });
      const until = await this.deliveries.defer(claimed, answer.inMs);
      // When this fails, the sweeper finds the row at its due time.
      const enqueueNow = (): void =>
        void this.deliveries.makeDueNow(key, until).then(
          () => this.trigger.enqueue(key),
          () => undefined,
        );
      if (until !== undefined) this.admission.queueDeferred(request, answer, enqueueNow);
      return answer;
    }
    let end: PostEnd = 'none';
    try {
      const posted = await this.post.send(post);
      end = postEndOf(posted);
      return posted;
    } finally {
      answer.leave(end);
    }
  }
}
