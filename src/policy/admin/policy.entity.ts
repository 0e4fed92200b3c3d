import { Column, CreateDateColumn, Entity, ForeignKey, PrimaryColumn, Unique, UpdateDateColumn } from 'typeorm';
import type { OrgId, PolicyId } from '../../kernel/ids.js';

/** A named policy text of an org, in its current version. */
@Entity('policies')
@Unique('uq_policies_name', ['orgId', 'name'])
export class PolicyEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_policies' })
  id: PolicyId;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_policies_org' })
  orgId: OrgId;

  @Column('text')
  name: string;

  @Column('integer', { default: 1 })
  version: number;

  @Column('text')
  text: string;

  /** `api`, `config` (declared in rialto.config.json) or `seed` (created with a new development org). */
  @Column('text', { default: 'api' })
  source: string;

  /** The template and inputs that the text was rendered from; null for a text that was given directly. */
  @Column('jsonb', { nullable: true })
  template: { id: string; inputs: Record<string, unknown> } | null;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @UpdateDateColumn({ type: 'timestamptz', name: 'updated_at' })
  updatedAt: Date;
}

/** One version of a policy. Versions are never deleted. */
@Entity('policy_versions')
export class PolicyVersionEntity {
  @PrimaryColumn('uuid', { name: 'policy_id', primaryKeyConstraintName: 'pk_policy_versions' })
  policyId: PolicyId;

  @PrimaryColumn('integer', { primaryKeyConstraintName: 'pk_policy_versions' })
  version: number;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_policy_versions_org' })
  orgId: OrgId;

  @Column('text')
  name: string;

  @Column('text')
  text: string;

  @Column('text', { name: 'created_by' })
  createdBy: string;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;
}
