import { Check, Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { AgentId, OrgId } from '../../kernel/ids.js';
import type { Definition, ExecutorConfig, PublishedAbout, PublishedSource } from '../published.types.js';

const live = 'archived_at is null';

/** An agent of our own: what it does, and what its card says. */
@Entity('published_agents')
@Index('uq_published_agents_name', ['orgId', 'name'], { unique: true, where: live })
@Index('uq_published_agents_handle', ['orgId', 'handle'], { unique: true, where: live })
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

  /** A second name of its own: a word, perhaps with a host behind `@`. */
  @Column('text', { nullable: true })
  handle: string | null;

  @Column('text')
  description: string;

  @Column('jsonb')
  executor: ExecutorConfig;

  /** Sealed; what signs the calls of an `http` executor. */
  @Column('text', { name: 'executor_secret', nullable: true })
  executorSecret: string | null;

  /** Sealed query of the URL of the executor, in whose place the URL has a mark. */
  @Column('text', { name: 'executor_query', nullable: true })
  executorQuery: string | null;

  /** `a2a_enabled`: absent at every door while it is false (RI-03). */
  @Column('boolean', { default: false })
  enabled: boolean;

  /** Null: as the deployment says (RIALTO_A2A_ACCEPT_CLEARTEXT). */
  @Column('boolean', { name: 'accept_cleartext', nullable: true })
  acceptCleartext: boolean | null;

  @Column('boolean', { name: 'publish_to_card', default: false })
  publishToCard: boolean;

  @Column('text', { default: 'context' })
  history: 'context' | 'agent';

  /** What its card says besides name and description. */
  @Column('jsonb')
  card: PublishedAbout;

  /** Who declared it: the API, rialto.config.json, the agents folder, or RIALTO_CONFORMANCE_AGENT. */
  @Column('text', { default: 'api' })
  source: PublishedSource;

  /** Raised by every change; cards and snapshots are keyed by it. */
  @Column('integer', { default: 1 })
  revision: number;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt: Date;

  @Column('timestamptz', { name: 'archived_at', nullable: true })
  archivedAt: Date | null;
}
