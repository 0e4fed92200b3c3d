import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';
import type { Offer, QuarantinedTool, ToolPin } from '../upstream.types.js';

/**
 * Credential of one caller for an MCP server, and the offer of the server to that caller. A replaced credential gets a
 * new id.
 */
@Entity('mcp_user_credentials')
@Index('uq_mcp_user_credentials_caller', ['server', 'caller'], { unique: true })
@Index('ix_mcp_user_credentials_org', ['orgId', 'caller'])
export class UserCredentialEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_mcp_user_credentials' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_mcp_user_credentials_org' })
  orgId: OrgId;

  /** Row of its MCP server. */
  @Column('uuid')
  @ForeignKey('McpServerEntity', { name: 'fk_mcp_user_credentials_server', onDelete: 'CASCADE' })
  server: string;

  /** Kind and id of the principal that owns it. */
  @Column('text')
  caller: string;

  /** Origin that it was set for. It is sent nowhere else, even when the server moves. */
  @Column('text')
  origin: string;

  /** Names of its headers. */
  @Column('jsonb')
  headers: string[];

  /** Encrypted values; empty when the credential was withdrawn. */
  @Column('text')
  sealed: string;

  /** A `json` column, which keeps the bytes. */
  @Column('json')
  offer: Offer;

  /**
   * As in the row of the server, but for the offer to this caller: all tools are approved with the first credential.
   */
  @Column('json', { name: 'approved_tools', default: () => "'[]'" })
  approvedTools: ToolPin[];

  @Column('json', { name: 'quarantined_tools', default: () => "'[]'" })
  quarantinedTools: QuarantinedTool[];

  @Column('integer', { default: 1 })
  revision: number;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;
}
