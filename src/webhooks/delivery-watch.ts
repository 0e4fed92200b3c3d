import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { Breaches } from '../platform/telemetry/breaches.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { DeliveryStore, type Claimed } from './delivery.store.js';
import type { Verdict } from './retry-plan.js';
import type { Posted } from './webhook-post.js';

const kind = 'deliveries';

/** What operators learn of deliveries: the log and the metrics. */
@Injectable()
export class DeliveryWatch implements OnModuleInit {
  private readonly breaches: Breaches;

  constructor(
    @Inject(LOGGER) readonly log: Logger,
    private readonly metrics: Metrics,
    private readonly deliveries: DeliveryStore,
  ) {
    this.breaches = new Breaches(metrics, log);
  }

  onModuleInit(): void {
    this.metrics.waits(kind, () => this.deliveries.waiting());
  }

  overtaken(id: string): void {
    this.breaches.count('I6', id);
  }

  takenOver(): void {
    this.metrics.takeovers.inc({ kind });
  }

  fenced(): void {
    this.metrics.fencedWrites.inc({ kind });
  }

  ended({ task_id: taskId, delivery, attempts, age_seconds: age }: Claimed, posted: Posted, verdict: Verdict): void {
    this.metrics.deliveryAttempts.inc({ outcome: verdict.kind });
    if (verdict.kind === 'delivered') return this.metrics.deliveryAge.observe(age + posted.durationMs / 1_000);
    const { status, error } = posted;
    const facts = { taskId, delivery, attempt: attempts, status, error, ...verdict };
    if (verdict.kind === 'retry') this.log.info(facts, 'a webhook was not taken; it is tried again');
    else this.log.warn(facts, 'a webhook was given up');
  }
}
