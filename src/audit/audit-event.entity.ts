import { Check, Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import type { OrgId } from '../kernel/ids.js';
import type { AuditEvent } from './audit-event.js';

/** A stored audit event. Rows are only inserted; a trigger refuses other changes. */
@Entity('audit_events')
@Index('ix_audit_events_org', ['orgId', 'at', 'id'])
export class AuditEventEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_audit_events' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: OrgId;

  @Column('timestamptz')
  at: Date;

  @Column('text')
  type: string;

  /** Null for an act without a session, which is its own session (`wholeEvent`). */
  @Column('text', { name: 'session_id', nullable: true })
  sessionId: string | null;

  /** The event without the members above; in rows of earlier versions, with them. */
  @Column('jsonb')
  event: Partial<AuditEvent>;
}

/** Position of an event in the chain of its org. */
@Entity('audit_chain')
@Unique('uq_audit_chain_event', ['eventId'])
@Check('ck_audit_chain_whole', 'whole is true')
export class AuditChainEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_audit_chain' })
  orgId: OrgId;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'pk_audit_chain' })
  sequence: string;

  @Column('uuid', { name: 'event_id' })
  eventId: string;

  @Column('text', { name: 'prev_hash' })
  prevHash: string;

  @Column('text')
  hash: string;

  /** True: the hash covers the whole event, also the members that are not in its body. Null in links before this. */
  @Column('boolean', { nullable: true })
  whole: boolean | null;
}

/** An event that waits for the sealer. */
@Entity('audit_pending')
export class AuditPendingEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_audit_pending' })
  orgId: OrgId;

  @PrimaryColumn('uuid', { name: 'event_id', primaryKeyConstraintName: 'pk_audit_pending' })
  eventId: string;

  @Column('timestamptz', { default: () => 'now()' })
  since: Date;
}

/**
 * A signed statement about the end of a chain. The checkpoints of an org are numbered and chained. Rows that were
 * written before this have the number 0 and are ordered by sequence.
 */
@Entity('audit_checkpoints')
@Index('uq_audit_checkpoints_number', ['orgId', 'number'], { unique: true, where: 'number > 0' })
@Index('ix_audit_checkpoints_cut', ['orgId', 'sequence'], { where: 'cut' })
export class AuditCheckpointEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_audit_checkpoints' })
  orgId: OrgId;

  @PrimaryColumn('bigint', { default: 0, primaryKeyConstraintName: 'pk_audit_checkpoints' })
  number: string;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'pk_audit_checkpoints' })
  sequence: string;

  @Column('text')
  hash: string;

  @Column('timestamptz', { default: () => 'now()' })
  at: Date;

  @Column('text')
  kid: string;

  @Column('text')
  signature: string;

  /** True for a cut: retention dropped all events up to here, and verification starts after it. */
  @PrimaryColumn('boolean', { default: false, primaryKeyConstraintName: 'pk_audit_checkpoints' })
  cut: boolean;

  /** Hash of the previous checkpoint, also when retention dropped that one. */
  @Column('text', { name: 'prev_hash', nullable: true })
  prevHash: string | null;

  /** Only for a cut: number of the last checkpoint that retention dropped. */
  @Column('bigint', { name: 'removed_to', nullable: true })
  removedTo: string | null;

  /**
   * Signature of all columns above. `signature` covers neither number, previous hash nor `removed_to`, because the
   * previous version checks it.
   */
  @Column('text', { name: 'chain_signature', nullable: true })
  chainSignature: string | null;
}

/** Number of the last checkpoint of an org that an anchor outside the database took. */
@Entity('audit_anchors')
export class AuditAnchorEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_audit_anchors' })
  orgId: OrgId;

  /** Kind of the anchor: `file`, `url` or `timestamp`. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_audit_anchors' })
  sink: string;

  @Column('bigint')
  number: string;

  @Column('timestamptz', { default: () => 'now()' })
  at: Date;
}

/** The timestamp of a checkpoint by an outside authority (RFC 3161). Rows are only inserted, as checkpoints are. */
@Entity('audit_timestamps')
export class AuditTimestampEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_audit_timestamps' })
  orgId: OrgId;

  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'pk_audit_timestamps' })
  number: string;

  /** TimeStampToken of the line of the checkpoint, in DER. */
  @Column('bytea')
  der: Buffer;
}

/** A key that seals the personal facts of one subject. Its deletion makes them unreadable. */
@Entity('audit_subject_keys')
@Index('ix_audit_subject_keys_subject', ['orgId', 'subject'])
export class AuditSubjectKeyEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_audit_subject_keys' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: OrgId;

  /** The caller, as `kind:id`. */
  @Column('text')
  subject: string;

  @Column('text')
  sealed: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}

/** The signing keys of the deployment, with sealed private keys. */
@Entity('signing_keys')
export class SigningKeyEntity {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_signing_keys' })
  kid: string;

  @Column('jsonb', { name: 'public_jwk' })
  publicJwk: object;

  @Column('text')
  sealed: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Column('timestamptz', { name: 'retired_at', nullable: true })
  retiredAt: Date | null;
}
