import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Notices } from '../../platform/bus/notices.js';
import { writeRowsIn } from '../../platform/database/row-writer.js';
import { SigningKeys } from '../../platform/secrets/signing-keys.js';
import { AuditService } from '../audit.service.js';
import type { Erasure, ErasureRequest } from '../audit.types.js';
import { signErasure } from './erasure-record.js';
import { subjectOf } from './personal-facts.js';
import { SubjectKeyStore } from './subject-key.store.js';

/** Makes the personal facts of a subject unreadable in the whole audit of an org, by deleting its keys (RE-86). */
@Injectable()
export class ErasureService {
  constructor(
    private readonly acts: AdminActs,
    private readonly store: SubjectKeyStore,
    private readonly audit: AuditService,
    private readonly signingKeys: SigningKeys,
    private readonly notices: Notices,
  ) {}

  /**
   * Erases a subject. The audit records the ids of the keys, signed, and not the subject. Throws `denied`, `conflict`
   * for the caller itself, which could hide its own acts, and `not_found` for a subject without a key.
   */
  async erase(ctx: CallContext, { kind, id }: ErasureRequest): Promise<Erasure> {
    const { org, principal, requestId } = ctx;
    const subject = subjectOf(callerOf({ kind, id }));
    const signer = await this.signingKeys.current();
    return this.acts.write(ctx, 'audit.erase', {}, async (tx) => {
      if (subject === subjectOf(callerOf(principal)))
        throw new RialtoError('conflict', { message: 'another admin must erase your own personal facts' });
      const keys = await this.store.erase(tx, org.id, subject);
      if (keys.length === 0)
        throw new RialtoError('not_found', { message: 'the audit has no readable personal facts of this caller' });
      const record = signErasure(org.id, keys, signer);
      await writeRowsIn(tx, this.audit.rowsOf(org.id, 'audit.erased', { ...record, requestId }));
      this.notices.tell(tx, 'audit.erased', { orgId: org.id });
      return { keys };
    });
  }
}
