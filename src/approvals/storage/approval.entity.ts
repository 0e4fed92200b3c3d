import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';

export type ApprovalState = 'pending' | 'approved' | 'denied' | 'used' | 'expired';

/**
 * A question whether one act may run, and the answer. At most one row of a digest is open. A row that expired keeps its
 * state until the same act is asked again; readers compare `expires_at`.
 */
@Entity('approvals')
@Check('ck_approvals_state', `state in ('pending', 'approved', 'denied', 'used', 'expired')`)
@Index('uq_approvals_open', ['orgId', 'digest'], { unique: true, where: `state in ('pending', 'approved', 'denied')` })
@Index('ix_approvals_org', ['orgId', 'id'])
@Index('ix_approvals_digest', ['orgId', 'digest'])
@Index('ix_approvals_waiting', ['orgId', 'caller'], { where: `state = 'pending'` })
export class ApprovalEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_approvals' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_approvals_org' })
  orgId: OrgId;

  /** Digest of the exact act: see `act-digest.ts`. */
  @Column('text')
  digest: string;

  @Column('text', { default: 'pending' })
  state: ApprovalState;

  /** Kind and id of the principal that wants to act. */
  @Column('text')
  caller: string;

  @Column('text')
  verb: string;

  @Column('text')
  action: string;

  /** Type and id of the resource, in Cedar syntax. */
  @Column('text')
  resource: string;

  /** The sealed content of the act, as JSON. */
  @Column('text')
  sealed: string;

  /** Names of the policies that ask. */
  @Column('jsonb')
  policies: string[];

  /** The approver is in all of these groups. */
  @Column('jsonb')
  groups: string[];

  @Column('integer', { name: 'lifetime_seconds' })
  lifetimeSeconds: number;

  @Column('timestamptz', { name: 'requested_at', default: () => 'now()' })
  requestedAt: Date;

  @Index('ix_approvals_expiry')
  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;

  @Column('timestamptz', { name: 'decided_at', nullable: true })
  decidedAt: Date | null;

  /** Kind and id of the approver. */
  @Column('text', { name: 'decided_by', nullable: true })
  decidedBy: string | null;

  @Column('text', { nullable: true })
  reason: string | null;

  @Column('integer', { name: 'uses_left', default: 1 })
  usesLeft: number;

  @Column('timestamptz', { name: 'used_at', nullable: true })
  usedAt: Date | null;

  /** Id of the last act that used the approval. */
  @Column('uuid', { name: 'used_by', nullable: true })
  usedBy: string | null;

  /** Keys of the acts that used the approval (`attemptKey`). */
  @Column('jsonb', { name: 'used_for', default: [] })
  usedFor: string[];
}
