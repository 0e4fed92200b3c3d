import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import type { Notice } from '../../kernel/notices.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Notices } from '../../platform/bus/notices.js';
import type { Tx } from '../../platform/database/tx.js';

/** Runs acts of org administration on the verb bus and publishes their notices. */
@Injectable()
export class OrgActs {
  constructor(
    readonly admin: AdminActs,
    readonly notices: Notices,
  ) {}

  /**
   * Publishes that credentials changed.
   * @param selection selects the credentials; empty: all credentials of the org.
   */
  tellCredentials(tx: Tx, orgId: OrgId, selection: Omit<Notice<'credentials.changed'>, 'orgId'> = {}): void {
    this.notices.tell(tx, 'credentials.changed', { orgId, ...selection });
  }
}
