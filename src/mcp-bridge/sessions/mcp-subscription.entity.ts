import { Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';

const primaryKeyConstraintName = 'pk_mcp_subscriptions';

/** A resource whose changes a session of the 2025 era wants to hear of. */
@Entity('mcp_subscriptions')
export class McpSubscriptionEntity {
  @ForeignKey('McpSessionEntity', { name: 'fk_mcp_subscriptions_session', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'session_id', primaryKeyConstraintName })
  sessionId: string;

  /** The row of its MCP server. */
  @ForeignKey('McpServerEntity', { name: 'fk_mcp_subscriptions_server', onDelete: 'CASCADE' })
  @Index('ix_mcp_subscriptions_server')
  @PrimaryColumn('uuid', { primaryKeyConstraintName })
  server: string;

  @PrimaryColumn('text', { primaryKeyConstraintName })
  uri: string;
}
