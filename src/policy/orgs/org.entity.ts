import {
  Check,
  Column,
  CreateDateColumn,
  Entity,
  ForeignKey,
  Index,
  PrimaryColumn,
  Unique,
  UpdateDateColumn,
} from 'typeorm';
import type { Role } from '../../kernel/call-context.js';
import type { KeyId, OrgId } from '../../kernel/ids.js';
import type { TrustTier } from '../../kernel/trust.js';

const roleCheck = `role in ('viewer', 'member', 'admin')`;

/** A tenant. Every stored row belongs to one org. A deleted org keeps only its audit. */
@Entity('orgs')
@Unique('uq_orgs_slug', ['slug'])
@Check('ck_orgs_trust_tier', 'trust_tier between 0 and 3')
export class OrgEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_orgs' })
  id: OrgId;

  @Column('text')
  slug: string;

  @Column('text')
  name: string;

  /** Name of the published agent for callers that name none. */
  @Column('text', { name: 'default_agent', nullable: true })
  defaultAgent: string | null;

  @Column('integer', { name: 'tool_timeout_ms', nullable: true })
  toolTimeoutMs: number | null;

  @Column('text', { name: 'tool_names', nullable: true })
  toolNames: string | null;

  /** How far the operator trusts the org, 0 to 3 (policy/trust/trust-tiers.ts). */
  @Column('smallint', { name: 'trust_tier', default: 1 })
  trustTier: TrustTier;

  /** Raised by every change of a policy. Cached decisions are keyed by it. */
  @Column('bigint', { name: 'policy_version', default: 0 })
  policyVersion: string;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @UpdateDateColumn({ type: 'timestamptz', name: 'updated_at' })
  updatedAt: Date;

  @Column('timestamptz', { name: 'deleted_at', nullable: true })
  deletedAt: Date | null;

  /** Time when the last of its rows was deleted, after `deleted_at`. */
  @Column('timestamptz', { name: 'purged_at', nullable: true })
  purgedAt: Date | null;
}

/** A domain that names an org in tokens of other systems, besides its slug. */
@Entity('org_domains')
export class OrgDomainEntity {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_org_domains' })
  domain: string;

  @Column('uuid', { name: 'org_id' })
  @Index('ix_org_domains_org')
  @ForeignKey('OrgEntity', { name: 'fk_org_domains_org' })
  orgId: OrgId;
}

/** A secret of an org for HS256 tokens. A rotated secret stays valid until `retires_at`. */
@Entity('org_secrets')
export class OrgSecretEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_org_secrets' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  @Index('ix_org_secrets_org')
  @ForeignKey('OrgEntity', { name: 'fk_org_secrets_org' })
  orgId: OrgId;

  @Column('text')
  sealed: string;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @Column('timestamptz', { name: 'retires_at', nullable: true })
  retiresAt: Date | null;
}

/** A user with tokens that an org accepts. */
@Entity('members')
@Check('ck_members_role', roleCheck)
export class MemberEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_members' })
  @ForeignKey('OrgEntity', { name: 'fk_members_org' })
  orgId: OrgId;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_members' })
  sub: string;

  @Column('text')
  role: Role;

  @Column('text', { array: true, default: '{}' })
  groups: string[];

  @Column('boolean', { default: true })
  active: boolean;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;
}

/** An API key for programs; only its SHA-256 is stored. With `agent`, its callers act as that registered agent. */
@Entity('api_keys')
@Unique('uq_api_keys_hash', ['secretHash'])
@Index('ix_api_keys_org', ['orgId', 'createdAt'])
@Check('ck_api_keys_role', roleCheck)
export class ApiKeyEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_api_keys' })
  id: KeyId;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_api_keys_org' })
  orgId: OrgId;

  @Column('text')
  name: string;

  @Column('text')
  role: Role;

  @Column('text', { array: true, default: '{}' })
  groups: string[];

  @Column('text', { nullable: true })
  agent: string | null;

  @Column('text', { name: 'secret_hash' })
  secretHash: string;

  @Column('text')
  hint: string;

  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt: Date | null;

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt: Date | null;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;
}

/** A token that was revoked before it expired. */
@Entity('revoked_tokens')
export class RevokedTokenEntity {
  @PrimaryColumn('uuid', { name: 'org_id', primaryKeyConstraintName: 'pk_revoked_tokens' })
  @ForeignKey('OrgEntity', { name: 'fk_revoked_tokens_org' })
  orgId: OrgId;

  @PrimaryColumn('text', { primaryKeyConstraintName: 'pk_revoked_tokens' })
  jti: string;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;
}
