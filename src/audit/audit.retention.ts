import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { anchorKinds } from './anchor-sinks.js';
import { AuditAnchorStore } from './audit-anchor.store.js';
import { AuditCheckpointStore, type Prefix } from './audit-checkpoint.store.js';
import { AuditVerificationService } from './audit-verification.service.js';
import { signed } from './checkpoint.js';

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
    private readonly keys: SigningKeys,
    private readonly checkpoints: AuditCheckpointStore,
    private readonly anchors: AuditAnchorStore,
    private readonly verification: AuditVerificationService,
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    const days = this.settings.RIALTO_AUDIT_RETENTION_DAYS;
    if (days === undefined) return;
    for (const prefix of await this.checkpoints.olderThan(days)) await this.cut(prefix);
  }

  private async cut({ org, sequence, hash }: Prefix): Promise<void> {
    if (!(await this.isIntact(org, sequence))) return;
    const signer = await this.keys.current(); // before the transaction, which must not wait for a second connection
    await this.checkpoints.underLock(org, async (client) => {
      const last = await this.checkpoints.last(client, org);
      const removedTo = await this.checkpoints.droppableTo(client, org, sequence, last.number);
      // Checkpoints that an anchor has not taken yet stay.
      if (!(await this.anchors.haveAll(client, org, removedTo, anchorKinds(this.settings)))) return;
      if (!(await this.checkpoints.isChained(client, org, sequence))) return; // another process dropped it
      await this.checkpoints.drop(client, org, sequence, removedTo);
      const at = new Date(systemClock.now()).toISOString();
      const place = { orgId: org, number: last.number + 1, prevHash: last.hash };
      const statement = { ...place, sequence, hash, at, cut: true as const, removedTo };
      await this.checkpoints.add(client, signed(statement, signer));
    });
  }

  /** Verifies the events before a cut: events with changed times look old, and a cut must not hide the change. */
  private async isIntact(org: OrgId, sequence: number): Promise<boolean> {
    const { valid, reason } = await this.verification.verify(org, sequence);
    if (!valid) this.log.error({ orgId: org, reason }, 'retention drops nothing of an audit that does not verify');
    return valid;
  }
}
