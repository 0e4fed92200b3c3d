import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Notices } from '../../platform/bus/notices.js';
import type { Tx } from '../../platform/database/tx.js';

/** What administration of orgs does on the bus and says to others. */
@Injectable()
export class OrgActs {
  constructor(
    readonly admin: AdminActs,
    readonly notices: Notices,
  ) {}

  tellCredentials(tx: Tx, orgId: OrgId): void {
    this.notices.tell(tx, 'credentials.changed', { orgId });
  }
}
