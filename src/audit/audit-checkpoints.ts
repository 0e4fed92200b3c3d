import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { AuditCheckpointStore } from './audit-checkpoint.store.js';
import { signed, type Signed } from './checkpoint.js';

/** Signs the end of each org's chain, within one minute also when no further event follows. */
@Injectable()
@Sweeps('audit.checkpoints')
export class AuditCheckpoints implements Sweeper {
  readonly everyMs = 30_000;

  constructor(
    private readonly store: AuditCheckpointStore,
    private readonly keys: SigningKeys,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async sweep(): Promise<void> {
    for (const org of await this.store.unsignedOrgs()) await this.sign(org);
  }

  /** Adds a checkpoint at the end of the chain, unless one already covers it. */
  async sign(org: OrgId): Promise<void> {
    const signer = await this.keys.current(); // before the transaction, which must not wait for a second connection
    let added: Signed | undefined;
    await this.store.underLock(org, async (client) => {
      const head = await this.store.unsignedHead(client, org);
      if (!head) return;
      const last = await this.store.last(client, org);
      const at = new Date(systemClock.now()).toISOString();
      added = signed({ orgId: org, number: last.number + 1, prevHash: last.hash, ...head, at }, signer);
      await this.store.add(client, added);
    });
    if (added) this.log.info({ ...added.statement, kid: added.kid, signature: added.signature }, 'audit checkpoint');
  }
}
