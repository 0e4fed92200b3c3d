import { Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import type { OrgId } from '../kernel/ids.js';
import type { AuditEvent } from './audit-event.js';

/** An act that is remembered. Rows are only ever inserted; a trigger refuses the rest. */
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

  @Column('text', { name: 'session_id', nullable: true })
  sessionId: string | null;

  @Column('jsonb')
  event: AuditEvent;
}

/** The place of an event in the chain of its org. */
@Entity('audit_chain')
@Unique('uq_audit_chain_event', ['eventId'])
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
}

/** Events that wait for the sealer. */
@Entity('audit_pending')
export class AuditPendingEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_audit_pending' })
  orgId: OrgId;

  @PrimaryColumn('uuid', { name: 'event_id', primaryKeyConstraintName: 'pk_audit_pending' })
  eventId: string;

  @Column('timestamptz', { default: () => 'now()' })
  since: Date;
}

/** A signed statement of how far a chain had come: a chain cut behind it is found out. */
@Entity('audit_checkpoints')
export class AuditCheckpointEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_audit_checkpoints' })
  orgId: OrgId;

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

  /** True where retention dropped everything up to here: verification starts behind it. */
  @PrimaryColumn('boolean', { default: false, primaryKeyConstraintName: 'pk_audit_checkpoints' })
  cut: boolean;
}

/** The deployment's signing keys, private halves sealed. */
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
