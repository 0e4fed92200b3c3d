import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { JsonObject } from '../../kernel/json.js';

/** A session of an MCP client of the 2025 era. Its state is only in this row, so any replica can serve it. */
@Entity('mcp_sessions')
@Index('ix_mcp_sessions_owner', ['orgId', 'principal', 'lastSeenAt'])
export class McpSessionEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_mcp_sessions' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  orgId: string;

  /** `<kind>:<id>` of the principal that opened it. */
  @Column('text')
  principal: string;

  @Column('text', { name: 'protocol_version' })
  protocolVersion: string;

  /** Name and version that the client stated. */
  @Column('text', { default: '' })
  client: string;

  /** Capabilities that the client stated: what it can be asked for. */
  @Column('json', { default: '{}' })
  capabilities: JsonObject;

  /** Lowest log level of servers that the client wants; null until it states one. */
  @Column('text', { name: 'log_level', nullable: true })
  logLevel: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Index('ix_mcp_sessions_seen')
  @Column('timestamptz', { name: 'last_seen_at', default: () => 'now()' })
  lastSeenAt: Date;
}
