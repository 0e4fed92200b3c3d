import { Injectable } from '@nestjs/common';
import { isUuid, type OrgId } from '../kernel/ids.js';
import { SigningKeys, type PublicJwk } from '../platform/secrets/signing-keys.js';
import { AuditEventStore } from './audit-event.store.js';

/** Provides the public keys that verify the checkpoints of an org. */
@Injectable()
export class AuditKeysService {
  constructor(
    private readonly events: AuditEventStore,
    private readonly keys: SigningKeys,
  ) {}

  /**
   * Returns every key that may have signed a checkpoint of an org, also those that no longer sign; none for an
   * unknown org (RE-85).
   */
  async publicKeys(orgId: string): Promise<readonly PublicJwk[]> {
    const since = isUuid(orgId) ? await this.events.orgSince(orgId as OrgId) : undefined;
    return since ? this.keys.publicKeysSince(since) : [];
  }
}
