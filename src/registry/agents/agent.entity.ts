import { Check, Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import type { AgentId, OrgId } from '../../kernel/ids.js';
import type { CardChange } from '../../protocol/a2a/card/card.js';
import type { CardSignatureState, KeyPin } from '../cards/card-trust.js';
import type { Health } from './health.js';
import type { TrustLevel } from '../../kernel/trust.js';

/** An agent that an org registered, with its card exactly as it was received. */
@Entity('agent_cards')
@Unique('uq_agent_cards_slug', ['orgId', 'slug'])
@Unique('uq_agent_cards_url', ['orgId', 'url'])
@Check('ck_agent_cards_trust', `trust_level in ('untrusted', 'standard', 'trusted')`)
@Check('ck_agent_cards_health', `health in ('healthy', 'degraded', 'unreachable', 'unknown')`)
export class AgentEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_agent_cards' })
  id: AgentId;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_agent_cards_org' })
  orgId: OrgId;

  @Column('text')
  slug: string;

  @Column('text')
  name: string;

  /** Base URL that the agent was registered with. Credentials are bound to its origin. */
  @Column('text')
  url: string;

  @Column('text', { name: 'card_url' })
  cardUrl: string;

  /** The sealed query of the card's address. `card_url` holds a marker in its place. */
  @Column('text', { name: 'card_query', nullable: true })
  cardQuery: string | null;

  @Column('text', { name: 'trust_level', default: 'standard' })
  trustLevel: TrustLevel;

  @Column('integer', { name: 'timeout_ms', nullable: true })
  timeoutMs: number | null;

  /** The card, byte for byte; null until the first fetch. */
  @Column('text', { nullable: true })
  card: string | null;

  @Column('text', { name: 'card_hash', nullable: true })
  cardHash: string | null;

  @Column('text', { nullable: true })
  etag: string | null;

  /**
   * First time each skill id was seen on the card, in ms. The agent with the older skill keeps a tool name that two
   * agents want (RE-10).
   */
  @Column('jsonb', { name: 'skills_since', default: {} })
  skillsSince: Record<string, number>;

  /** A `Credential` as sealed JSON. */
  @Column('text', { nullable: true })
  credential: string | null;

  @Column('text', { name: 'credential_kind', nullable: true })
  credentialKind: string | null;

  /** The last four characters of the credential. */
  @Column('text', { name: 'credential_hint', nullable: true })
  credentialHint: string | null;

  /** `api`, or `config` when rialto.config.json declares the agent. */
  @Column('text', { default: 'api' })
  source: string;

  @Column('text', { default: 'unknown' })
  health: Health;

  @Column('integer', { default: 0 })
  failures: number;

  /** Time since which a changed card waits for approval (RIALTO_CARD_CHANGES). */
  @Column('timestamptz', { name: 'quarantined_at', nullable: true })
  quarantinedAt: Date | null;

  /** Result of the signature check; null before the first check and with RIALTO_CARD_SIGNATURES=off. */
  @Column('jsonb', { nullable: true })
  signature: CardSignatureState | null;

  /** The key that has to sign the card. An approval replaces it. */
  @Column('jsonb', { name: 'pinned_key', nullable: true })
  pinnedKey: KeyPin | null;

  @Column('text', { name: 'last_error', nullable: true })
  lastError: string | null;

  @Column('timestamptz', { name: 'last_fetched_at', nullable: true })
  lastFetchedAt: Date | null;

  @Column('timestamptz', { name: 'last_seen_at', nullable: true })
  lastSeenAt: Date | null;

  @Index('ix_agent_cards_refresh')
  @Column('timestamptz', { name: 'next_refresh_at', default: () => 'now()' })
  nextRefreshAt: Date;

  @Column('timestamptz', { name: 'lease_until', nullable: true })
  leaseUntil: Date | null;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  /** Set when something that readers of the agent can see changes. Snapshots use it as their key. */
  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt: Date;
}

/** One change of a card: the differences from the previous version. */
@Entity('agent_card_changes')
@Index('ix_agent_card_changes_agent', ['agentId', 'detectedAt'])
export class AgentCardChangeEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_agent_card_changes' })
  id: string;

  @Column('uuid', { name: 'agent_id' })
  @ForeignKey('AgentEntity', { name: 'fk_agent_card_changes_agent', onDelete: 'CASCADE' })
  agentId: AgentId;

  @Column('uuid', { name: 'org_id' })
  orgId: OrgId;

  @Column('text', { name: 'card_hash' })
  cardHash: string;

  @Column('jsonb')
  changes: CardChange[];

  @Column('timestamptz', { name: 'detected_at', default: () => 'now()' })
  detectedAt: Date;
}
