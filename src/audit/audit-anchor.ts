import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import type { OrgId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { HealthService, type HealthCheck } from '../platform/telemetry/health.service.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { Metrics, type Waiting } from '../platform/telemetry/metrics.js';
import { anchorSinks, type AnchorSink } from './anchor-sinks.js';
import { AuditAnchorStore } from './audit-anchor.store.js';
import { lineOf } from './checkpoint.js';

/** Seconds that a checkpoint may wait for an anchor before the readiness probe reports it. */
const maxLagSeconds = 600;
const pollEveryMs = 5_000;

/**
 * Delivers every numbered checkpoint to the anchors outside the database, in order and at least once. A checkpoint
 * stays due until the anchor took it, also after a restart.
 */
@Injectable()
@Sweeps('audit.anchor')
export class AuditAnchor implements Sweeper, OnModuleInit {
  readonly everyMs = 5_000;
  private readonly sinks: readonly AnchorSink[];
  private lastPoll?: { readonly at: number; readonly answer: Promise<Waiting> };

  constructor(
    private readonly store: AuditAnchorStore,
    private readonly metrics: Metrics,
    private readonly health: HealthService,
    safeFetch: SafeFetch,
    @Inject(SETTINGS) settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    this.sinks = anchorSinks(settings, safeFetch);
  }

  onModuleInit(): void {
    if (this.sinks.length === 0) return;
    this.metrics.waits('anchor', () => this.waiting());
    this.health.add({ name: 'anchor', run: () => this.check() });
  }

  async sweep(): Promise<void> {
    for (const sink of this.sinks)
      await this.deliver(sink).catch((err: unknown) =>
        this.log.warn({ err, anchor: sink.kind }, 'an anchor of the audit cannot be reached; checkpoints wait for it'),
      );
  }

  /**
   * Delivers the due checkpoints. When an anchor refuses a checkpoint, only its org has to wait; when the anchor is
   * not available, the sweep ends.
   */
  private async deliver(sink: AnchorSink): Promise<void> {
    const refused = new Set<OrgId>();
    for (;;) {
      const due = await this.store.due(sink.kind, [...refused]);
      if (due.length === 0) return;
      for (const checkpoint of due) {
        const org = checkpoint.orgId as OrgId;
        if (refused.has(org)) continue;
        try {
          await sink.store(lineOf(checkpoint));
        } catch (err) {
          if (!(err instanceof RialtoError && err.code === 'unprocessable')) throw err;
          refused.add(org);
          this.log.warn(
            { err, anchor: sink.kind, orgId: org, number: checkpoint.number },
            'an anchor refused a checkpoint',
          );
          continue;
        }
        await this.store.recordTaken(sink.kind, checkpoint);
      }
    }
  }

  /** Returns the backlog of the anchor with the largest lag. */
  private async waiting(): Promise<Waiting> {
    const all = await Promise.all(this.sinks.map(({ kind }) => this.store.waiting(kind)));
    return all.reduce((worst, one) => (one.lagSeconds > worst.lagSeconds ? one : worst));
  }

  /**
   * Reports `ok` or `degraded`, never `down`: the gateway works without an anchor. A database failure has its own
   * check.
   */
  private async check(): ReturnType<HealthCheck['run']> {
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
