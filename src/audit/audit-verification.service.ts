import { Injectable } from '@nestjs/common';
import type { OrgId } from '../kernel/ids.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { AuditCheckpointStore } from './audit-checkpoint.store.js';
import { AuditEventStore } from './audit-event.store.js';
import type { Verification } from './audit.types.js';
import { ChainWalk } from './chain-walk.js';

/** How often a verification restarts when retention drops events in the meantime. */
const mostRounds = 3;

/**
 * Verifies the chain of an org from its first event to its last, and against every checkpoint (RE-84). Changes
 * nothing.
 */
@Injectable()
export class AuditVerificationService {
  constructor(
    private readonly events: AuditEventStore,
    private readonly checkpoints: AuditCheckpointStore,
    private readonly keys: SigningKeys,
  ) {}

  /**
   * Verifies a whole chain, or its start up to an event and the next checkpoint, which covers that event. Throws
   * `unavailable` when this process can open no signing key.
   */
  async verify(org: OrgId, upTo = Infinity, check = this.keys.verifier()): Promise<Verification> {
    for (let round = 1; ; round++) {
      const cut = await this.checkpoints.newestCut(org);
      const found = await new ChainWalk({ org, upTo, cut }, this.events, this.checkpoints, check).verify();
      const isSettled = found.valid || round === mostRounds;
      if (isSettled || (await this.checkpoints.newestCut(org))?.sequence === cut?.sequence) return found;
    }
  }
}
