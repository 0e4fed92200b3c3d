import { Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';

const primaryKeyConstraintName = 'pk_mcp_subscriptions';

/** A resource that a session of the 2025 era subscribes to. */
@Entity('mcp_subscriptions')
export class McpSubscriptionEntity {
  @ForeignKey('McpSessionEntity', { name: 'fk_mcp_subscriptions_session', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'session_id', primaryKeyConstraintName })
  sessionId: string;

  /** Id of the row of its MCP server. */
  @ForeignKey('McpServerEntity', { name: 'fk_mcp_subscriptions_server', onDelete: 'CASCADE' })
  @Index('ix_mcp_subscriptions_server')
  @PrimaryColumn('uuid', { primaryKeyConstraintName })
  server: string;

  @PrimaryColumn('text', { primaryKeyConstraintName })
  uri: string;
}
