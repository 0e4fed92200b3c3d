import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import type { OrgId } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { anchorSinks, type AnchorSink } from './anchor-sinks.js';
import { AuditAnchorStore } from './audit-anchor.store.js';
import { AuditTimestampStore } from '../timestamps/audit-timestamp.store.js';

/**
 * Delivers every numbered checkpoint to the anchors outside the database, in order and at least once. A checkpoint
 * stays due until the anchor took it, also after a restart. A time-stamping authority gets the newest one only.
 */
@Injectable()
@Sweeps('audit.anchor')
export class AuditAnchor implements Sweeper {
  readonly everyMs = 5_000;
  private readonly sinks: readonly AnchorSink[];

  constructor(
    private readonly store: AuditAnchorStore,
    timestamps: AuditTimestampStore,
    safeFetch: SafeFetch,
    @Inject(SETTINGS) settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {
    this.sinks = anchorSinks(settings, safeFetch, timestamps);
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
          await sink.store(checkpoint);
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
}
