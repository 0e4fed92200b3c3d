import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { JsonObject } from '../../kernel/json.js';

/** A session of an MCP client of the 2025 era. It holds no state but whose it is, so any replica serves it. */
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

  /** Name and version of the client, as it said. */
  @Column('text', { default: '' })
  client: string;

  /** What it can be asked for, as it said. */
  @Column('json', { default: '{}' })
  capabilities: JsonObject;

  /** From which level on it wants to hear what servers log; null while it did not say. */
  @Column('text', { name: 'log_level', nullable: true })
  logLevel: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Index('ix_mcp_sessions_seen')
  @Column('timestamptz', { name: 'last_seen_at', default: () => 'now()' })
  lastSeenAt: Date;
}
