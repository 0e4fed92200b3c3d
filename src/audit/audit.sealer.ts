import { Injectable, type OnModuleInit } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { AuditCheckpoints } from './audit-checkpoints.js';
import { AuditPendingStore } from './audit-pending.store.js';

const checkpointEveryMs = 60_000;

/**
 * Gives waiting events their sequence and hash, without gaps and within a second. One sealer runs for each org at a
 * time.
 */
@Injectable()
@Sweeps('audit.seal')
export class AuditSealer implements Sweeper, OnModuleInit {
  readonly everyMs = 500;
  private readonly checkpointed = new Map<string, number>();

  constructor(
    private readonly store: AuditPendingStore,
    private readonly checkpoints: AuditCheckpoints,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.waits('audit', () => this.store.waiting());
  }

  async sweep(): Promise<void> {
    for (const org of await this.store.pendingOrgs()) await this.sealOrg(org, false);
  }

  /**
   * Seals all waiting events of an org. With `wait` it waits for another sealer of the org; without, it leaves the
   * work to it.
   */
  async sealOrg(org: OrgId, wait: boolean): Promise<void> {
    if ((await this.store.sealOrg(org, wait)) > 0) await this.checkpoint(org);
  }

  private async checkpoint(org: OrgId): Promise<void> {
    const now = systemClock.now();
    if (now - (this.checkpointed.get(org) ?? 0) < checkpointEveryMs) return;
    this.checkpointed.set(org, now);
    await this.checkpoints.signHead(org);
  }
}
