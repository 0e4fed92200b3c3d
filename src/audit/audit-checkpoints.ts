import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { AnchorKind } from './anchors/anchor-sinks.js';
import { AuditAnchorStore } from './anchors/audit-anchor.store.js';
import { AuditCheckpointStore, type Prefix } from './audit-checkpoint.store.js';
import { signed, type Signed } from './checkpoint.js';

/**
 * Signs the end of each org's chain, within one minute also when no further event follows, and the cuts of retention.
 */
@Injectable()
@Sweeps('audit.checkpoints')
export class AuditCheckpoints implements Sweeper {
  readonly everyMs = 30_000;

  constructor(
    private readonly store: AuditCheckpointStore,
    private readonly anchored: AuditAnchorStore,
    private readonly keys: SigningKeys,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    for (const org of await this.store.unsignedOrgs()) await this.signHead(org);
  }

  /** Adds a checkpoint at the end of the chain, unless one already covers it. */
  async signHead(org: OrgId): Promise<void> {
    const signer = await this.keys.current(); // before the transaction, which must not wait for a second connection
    let added: Signed | undefined;
    await this.store.underLock(org, async (client) => {
      const head = await this.store.unsignedHead(client, org);
      if (!head) return;
      const last = await this.store.lastNumbered(client, org);
      const at = new Date(systemClock.now()).toISOString();
      added = signed({ orgId: org, number: last.number + 1, prevHash: last.hash, ...head, at }, signer);
      await this.store.insertCheckpoint(client, added);
    });
    if (added) this.log.info({ ...added.statement, kid: added.kid, signature: added.signature }, 'audit checkpoint');
  }

  /**
   * Drops the events and checkpoints before a cut and adds the checkpoint that names them. Does nothing while an
   * anchor has not taken one of these checkpoints, or when another process dropped them.
   */
  async cutPrefix({ org, sequence, hash }: Prefix, anchors: readonly AnchorKind[]): Promise<void> {
    const signer = await this.keys.current(); // before the transaction, which must not wait for a second connection
    await this.store.underLock(org, async (client) => {
      const last = await this.store.lastNumbered(client, org);
      const removedTo = await this.store.droppableTo(client, org, sequence, last.number);
      if (!(await this.anchored.haveAll(client, org, removedTo, anchors))) return;
      if (!(await this.store.isChained(client, org, sequence))) return;
      await this.store.dropPrefix(client, org, sequence, removedTo);
      const at = new Date(systemClock.now()).toISOString();
      const place = { orgId: org, number: last.number + 1, prevHash: last.hash };
      const statement = { ...place, sequence, hash, at, cut: true as const, removedTo };
      await this.store.insertCheckpoint(client, signed(statement, signer));
    });
  }
}
