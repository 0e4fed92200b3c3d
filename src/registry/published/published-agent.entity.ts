import { Check, Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { AgentId, OrgId } from '../../kernel/ids.js';
import type { PublicKey } from '../../protocol/e2ee/keys.js';
import type { Definition, ExecutorConfig, PublishedAbout, PublishedSource } from '../published.types.js';

const live = 'archived_at is null';

/** A published agent: its executor and the content of its card. */
@Entity('published_agents')
@Index('uq_published_agents_name', ['orgId', 'name'], { unique: true, where: live })
@Index('uq_published_agents_handle', ['orgId', 'handle'], { unique: true, where: live })
@Index('ix_published_agents_host_handle', ['handle'], { where: `archived_at is null and handle like '%@%'` })
@Check('ck_published_agents_history', `history in ('context', 'agent')`)
@Check('ck_published_agents_source', `source in ('api', 'config', 'folder', 'conformance')`)
export class PublishedAgentEntity implements Definition {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_published_agents' })
  id: AgentId;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_published_agents_org' })
  orgId: OrgId;

  @Column('text')
  name: string;

  /** Second name of the agent: a word, optionally with `@` and a host. */
  @Column('text', { nullable: true })
  handle: string | null;

  @Column('text')
  description: string;

  @Column('jsonb')
  executor: ExecutorConfig;

  /** Sealed secret that signs calls to an `http` executor, opens a mailbox, or is the key of a model. */
  @Column('text', { name: 'executor_secret', nullable: true })
  executorSecret: string | null;

  /** Sealed query of the executor's URL. The URL in `executor` has a marker in its place. */
  @Column('text', { name: 'executor_query', nullable: true })
  executorQuery: string | null;

  /** `a2a_enabled`. While it is false, no door shows the agent (RI-03). */
  @Column('boolean', { default: false })
  enabled: boolean;

  /** Null: the setting of the deployment applies (RIALTO_A2A_ACCEPT_CLEARTEXT). */
  @Column('boolean', { name: 'accept_cleartext', nullable: true })
  acceptCleartext: boolean | null;

  /** Public keys to which senders encrypt, and with which they verify; the newest of each use is last. */
  @Column('jsonb', { default: [] })
  keys: readonly PublicKey[];

  @Column('boolean', { name: 'publish_to_card', default: false })
  publishToCard: boolean;

  @Column('text', { default: 'context' })
  history: 'context' | 'agent';

  /** Content of the card except name and description. */
  @Column('jsonb')
  card: PublishedAbout;

  /** Source of the declaration: the API, rialto.config.json, the agents folder, or RIALTO_CONFORMANCE_AGENT. */
  @Column('text', { default: 'api' })
  source: PublishedSource;

  /** Increases with every change. Cards and snapshots use it in their keys. */
  @Column('integer', { default: 1 })
  revision: number;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt: Date;

  @Column('timestamptz', { name: 'archived_at', nullable: true })
  archivedAt: Date | null;
}
