import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';
import type { Offer, QuarantinedTool, ToolPin } from '../upstream.types.js';

/** By what one caller is known to an MCP server, and what that has for it. One that is given anew has another id. */
@Entity('mcp_user_credentials')
@Index('uq_mcp_user_credentials_caller', ['server', 'caller'], { unique: true })
@Index('ix_mcp_user_credentials_org', ['orgId', 'caller'])
export class UserCredentialEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_mcp_user_credentials' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_mcp_user_credentials_org' })
  orgId: OrgId;

  /** The row of its MCP server. */
  @Column('uuid')
  @ForeignKey('McpServerEntity', { name: 'fk_mcp_user_credentials_server', onDelete: 'CASCADE' })
  server: string;

  /** Whose it is: kind and id of a principal. */
  @Column('text')
  caller: string;

  /** Where it was given for: it is sent nowhere else, wherever its server moves. */
  @Column('text')
  origin: string;

  /** The names of its headers. */
  @Column('jsonb')
  headers: string[];

  /** Empty: it was taken back. */
  @Column('text')
  sealed: string;

  /** As its bytes came. */
  @Column('json')
  offer: Offer;

  /** As in the row of the server, of what is offered to this caller: all of it is approved when the first credential is given. */
  @Column('json', { name: 'approved_tools', default: () => "'[]'" })
  approvedTools: ToolPin[];

  @Column('json', { name: 'quarantined_tools', default: () => "'[]'" })
  quarantinedTools: QuarantinedTool[];

  @Column('integer', { default: 1 })
  revision: number;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;
}
