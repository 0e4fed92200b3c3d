import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { HealthService, type HealthCheck } from '../../platform/telemetry/health.service.js';
import { Metrics, type Waiting } from '../../platform/telemetry/metrics.js';
import { anchorKinds, type AnchorKind } from './anchor-sinks.js';
import { AuditAnchorStore } from './audit-anchor.store.js';

/** Seconds that a checkpoint may wait for an anchor before the readiness probe reports it. */
const maxLagSeconds = 600;
const pollEveryMs = 5_000;

/** Reports how long checkpoints wait for their anchor, to metrics and the readiness probe. */
@Injectable()
export class AnchorLag implements OnModuleInit {
  private readonly kinds: readonly AnchorKind[];
  private lastPoll?: { readonly at: number; readonly answer: Promise<Waiting> };

  constructor(
    private readonly store: AuditAnchorStore,
    private readonly metrics: Metrics,
    private readonly health: HealthService,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.kinds = anchorKinds(settings);
  }

  onModuleInit(): void {
    if (this.kinds.length === 0) return;
    this.metrics.waits('anchor', () => this.waiting());
    this.health.add({ name: 'anchor', run: () => this.checkLag() });
  }

  /** Returns the backlog of the anchor with the largest lag. */
  private async waiting(): Promise<Waiting> {
    const all = await Promise.all(this.kinds.map((kind) => this.store.waiting(kind)));
    return all.reduce((worst, one) => (one.lagSeconds > worst.lagSeconds ? one : worst));
  }

  /**
   * Reports `ok` or `degraded`, never `down`: the gateway works without an anchor. A database failure has its own
   * check.
   */
  private async checkLag(): ReturnType<HealthCheck['run']> {
    const at = systemClock.elapsed();
    if (!this.lastPoll || at - this.lastPoll.at > pollEveryMs) this.lastPoll = { at, answer: this.waiting() };
    const lagSeconds = await this.lastPoll.answer.then(
      (waiting) => waiting.lagSeconds,
      () => 0,
    );
    if (lagSeconds <= maxLagSeconds) return { status: 'ok' };
    const minutes = Math.floor(lagSeconds / 60);
    return {
      status: 'degraded',
      detail: `checkpoints of the audit have waited for their anchor for ${minutes} minutes`,
    };
  }
}
