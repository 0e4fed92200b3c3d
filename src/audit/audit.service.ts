import { Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { newId, type OrgId } from '../kernel/ids.js';
import { RowWriter, type RowChange } from '../platform/database/row-writer.js';
import type { Tx } from '../platform/database/tx.js';
import type { AuditEvent } from './audit-event.js';
import { auditRows, sealedEvent } from './audit.recorder.js';
import { subjectOf, type PersonalFacts } from './personal/personal-facts.js';
import { SubjectKeys } from './personal/subject-keys.js';

/** Records facts in the audit that are not acts. */
@Injectable()
export class AuditService {
  constructor(
    private readonly writer: RowWriter,
    private readonly keys: SubjectKeys,
  ) {}

  /** Records a security fact that is not an act, e.g. a token that claims another tenant. */
  async note(
    orgId: OrgId,
    type: string,
    facts: Record<string, unknown>,
    personal: readonly PersonalFacts[] = [],
  ): Promise<void> {
    await this.writer.write(await this.sealedRowsOf(orgId, type, facts, personal));
  }

  /** Returns the rows of such a fact, for callers that commit them together with their own change. */
  rowsOf(orgId: string, type: string, facts: Record<string, unknown>): RowChange[] {
    return auditRows(newEvent(orgId, type, facts));
  }

  /**
   * Like `rowsOf`, with facts about callers, which an erasure makes unreadable. The subject of each is a caller
   * (`callerOf`).
   */
  async sealedRowsOf(
    orgId: OrgId,
    type: string,
    facts: Record<string, unknown>,
    personal: readonly PersonalFacts[],
    tx?: Tx,
  ): Promise<RowChange[]> {
    const all = personal.map(({ subject, ...more }) => ({ subject: subjectOf(subject), ...more }));
    const subjects = all.map(({ subject }) => subject);
    const ring = await (tx ? this.keys.ringIn(tx, orgId, subjects) : this.keys.ringOf(orgId, subjects));
    return auditRows(sealedEvent({ event: newEvent(orgId, type, facts), personal: all }, ring));
  }
}

function newEvent(orgId: string, type: string, facts: Record<string, unknown>): AuditEvent {
  return { ...facts, id: newId(), orgId, at: new Date(systemClock.now()).toISOString(), type };
}
