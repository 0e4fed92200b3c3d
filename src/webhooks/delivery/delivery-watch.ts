import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { AuditService } from '../../audit/audit.service.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import { Breaches } from '../../platform/telemetry/breaches.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { eventsOf, type ConfigEvent } from './config-event.js';
import { DeliveryStore, type Claimed } from './delivery.store.js';
import type { Verdict } from './retry-plan.js';
import type { Posted } from './webhook-post.js';

const kind = 'deliveries';

/** The events of a configuration after an attempt. */
export interface Told {
  readonly events: readonly ConfigEvent[];
  /** Rows for the audit. */
  readonly rows: readonly RowChange[];
}

/** Reports about deliveries: to operators in the log and the metrics, to the org in its audit. */
@Injectable()
export class DeliveryWatch implements OnModuleInit {
  private readonly breaches: Breaches;

  constructor(
    @Inject(LOGGER) readonly log: Logger,
    private readonly metrics: Metrics,
    private readonly deliveries: DeliveryStore,
    private readonly audit: AuditService,
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

  /** The events of a configuration after an attempt, to be committed with its result. */
  tellingOf(claimed: Claimed, verdict: Verdict): Told {
    const events = eventsOf(claimed.state === 'failing' ? 'failing' : 'active', verdict);
    if (events.length === 0) return { events, rows: [] };
    const facts = {
      taskId: claimed.task_id,
      configId: claimed.config_id,
      host: new URL(claimed.url).host,
      delivery: claimed.delivery,
      ...(verdict.kind === 'closed' && { reason: verdict.reason }),
    };
    return { events, rows: events.flatMap((event) => this.audit.rowsOf(claimed.org_id, `webhook.${event}`, facts)) };
  }

  told({ events }: Told): void {
    for (const event of events) this.metrics.webhookConfigs.inc({ event });
  }

  ended({ task_id: taskId, delivery, attempts, age_seconds: age }: Claimed, posted: Posted, verdict: Verdict): void {
    this.metrics.deliveryAttempts.inc({ outcome: verdict.kind });
    if (verdict.kind === 'delivered') return this.metrics.deliveryAge.observe(age + posted.durationMs / 1_000);
    const { status, error } = posted;
    const facts = { taskId, delivery, attempt: attempts, status, error, ...verdict };
    if (verdict.kind === 'retry') this.log.info(facts, 'a receiver did not accept a webhook; it will be retried');
    else this.log.warn(facts, 'a webhook was given up');
  }
}
