import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import type { Notice } from '../../kernel/notices.js';
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

  /** @param whose absent: everybody's of the org. */
  tellCredentials(tx: Tx, orgId: OrgId, whose: Omit<Notice<'credentials.changed'>, 'orgId'> = {}): void {
    this.notices.tell(tx, 'credentials.changed', { orgId, ...whose });
  }
}
