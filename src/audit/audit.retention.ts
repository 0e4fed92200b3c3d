import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { anchorKinds } from './anchors/anchor-sinks.js';
import { AuditCheckpoints } from './audit-checkpoints.js';
import { AuditCheckpointStore, type Prefix } from './audit-checkpoint.store.js';
import { AuditVerificationService } from './audit-verification.service.js';

/**
 * Drops events that are older than RIALTO_AUDIT_RETENTION_DAYS. It drops only a sealed start of the chain, and adds a
 * checkpoint that is signed as a cut and names the dropped events and checkpoints. The rest can still be verified,
 * and the chain cannot be shortened unnoticed without the key.
 */
@Injectable()
@Sweeps('audit.retention')
export class AuditRetention implements Sweeper {
  readonly everyMs = 3_600_000;

  constructor(
    private readonly checkpoints: AuditCheckpointStore,
    private readonly signer: AuditCheckpoints,
    private readonly verification: AuditVerificationService,
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    const days = this.settings.RIALTO_AUDIT_RETENTION_DAYS;
    if (days === undefined) return;
    for (const prefix of await this.checkpoints.olderThan(days)) await this.cutIntact(prefix);
  }

  private async cutIntact(prefix: Prefix): Promise<void> {
    if (await this.isIntact(prefix)) await this.signer.cutPrefix(prefix, anchorKinds(this.settings));
  }

  /** Verifies the events before a cut: events with changed times look old, and a cut must not hide the change. */
  private async isIntact({ org, sequence }: Prefix): Promise<boolean> {
    const { valid, reason } = await this.verification.verify(org, sequence);
    if (!valid) this.log.error({ orgId: org, reason }, 'retention drops nothing of an audit that does not verify');
    return valid;
  }
}
