import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A session of an MCP client of the 2025 era. It holds no state but whose it is, so any replica serves it. */
@Entity('mcp_sessions')
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

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;

  @Index('ix_mcp_sessions_seen')
  @Column('timestamptz', { name: 'last_seen_at', default: () => 'now()' })
  lastSeenAt: Date;
}
