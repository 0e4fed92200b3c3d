import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { AuditService } from '../../audit/audit.service.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import { Breaches } from '../../platform/telemetry/breaches.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { configEventsOf, type ConfigEvent } from './config-event.js';
import { DeliveryStore, type Claimed } from './delivery.store.js';
import type { Verdict } from './retry-plan.js';
import type { Posted } from './webhook-post.js';

const kind = 'deliveries';

/** The events of a configuration after an attempt. */
export interface AttemptEvents {
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
    this.metrics.waits(kind, () => this.deliveries.countWaiting());
  }

  countOvertaken(id: string): void {
    this.breaches.count('I6', id);
  }

  countTakeover(): void {
    this.metrics.takeovers.inc({ kind });
  }

  countFenced(): void {
    this.metrics.fencedWrites.inc({ kind });
  }

  /** The events of a configuration after an attempt, to be committed with its result. */
  eventsOf(claimed: Claimed, verdict: Verdict): AttemptEvents {
    const events = configEventsOf(claimed.state === 'failing' ? 'failing' : 'active', verdict);
    if (events.length === 0) return { events, rows: [] };
    const facts = {
      taskId: claimed.taskId,
      configId: claimed.configId,
      host: new URL(claimed.url).host,
      delivery: claimed.delivery,
      ...(verdict.kind === 'closed' && { reason: verdict.reason }),
    };
    return { events, rows: events.flatMap((event) => this.audit.rowsOf(claimed.orgId, `webhook.${event}`, facts)) };
  }

  countEvents({ events }: AttemptEvents): void {
    for (const event of events) this.metrics.webhookConfigs.inc({ event });
  }

  reportEnd({ taskId, delivery, attempts, ageSeconds }: Claimed, posted: Posted, verdict: Verdict): void {
    this.metrics.deliveryAttempts.inc({ outcome: verdict.kind });
    if (verdict.kind === 'delivered') return this.metrics.deliveryAge.observe(ageSeconds + posted.durationMs / 1_000);
    const { status, error, detail } = posted;
    const facts = { taskId, delivery, attempt: attempts, status, error, detail, ...verdict };
    if (verdict.kind === 'retry') this.log.info(facts, 'a receiver did not accept a webhook; it will be retried');
    else this.log.warn(facts, 'a webhook was given up');
  }
}
