import { Check, Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import type { OrgId } from '../../kernel/ids.js';
import type {
  Era,
  Offer,
  Program,
  QuarantinedTool,
  Root,
  ToolChanges,
  ToolPin,
  UpstreamTransport,
  UserCredentials,
} from '../upstream.types.js';

/** MCP server that an org has registered. */
@Entity('mcp_servers')
@Index('uq_mcp_servers_server', ['orgId', 'serverId'], { unique: true })
@Index('ix_mcp_servers_declared', ['id'], { where: `source = 'config'` })
@Check('ck_mcp_servers_transport', `transport in ('streamable-http', 'sse', 'websocket', 'stdio')`)
@Check('ck_mcp_servers_source', `source in ('api', 'config')`)
@Check('ck_mcp_servers_era', `era in ('auto', 'legacy', 'modern')`)
@Check('ck_mcp_servers_tool_changes', `tool_changes in ('accept', 'hold-changed', 'hold-all')`)
@Check(
  'ck_mcp_servers_per_user',
  `per_user in ('none', 'optional', 'required') and (per_user = 'none' or transport <> 'stdio')`,
)
@Check(
  'ck_mcp_servers_place',
  `(transport = 'stdio') = (program is not null) and (transport = 'stdio') = (url is null)`,
)
export class McpServerEntity {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'pk_mcp_servers' })
  id: string;

  @Column('uuid', { name: 'org_id' })
  @ForeignKey('OrgEntity', { name: 'fk_mcp_servers_org' })
  orgId: OrgId;

  /** Prefix of its tools, and its name in policies. */
  @Column('text', { name: 'server_id' })
  serverId: string;

  @Column('text')
  name: string;

  @Column('text')
  transport: UpstreamTransport;

  @Column('text', { nullable: true })
  url: string | null;

  @Column('jsonb', { nullable: true })
  program: Program | null;

  /** Encrypted headers, or environment of its program. */
  @Column('text', { nullable: true })
  secrets: string | null;

  /** Names for display; values are never returned. */
  @Column('jsonb', { name: 'header_names' })
  headerNames: string[];

  @Column('jsonb', { name: 'env_names' })
  envNames: string[];

  @Column('text', { name: 'per_user', default: 'none' })
  userCredentials: UserCredentials;

  /** Names of the headers that a user's credential consists of. */
  @Column('jsonb', { name: 'user_headers', default: ['Authorization'] })
  userHeaders: string[];

  @Column('integer', { name: 'timeout_ms' })
  timeoutMs: number;

  @Column('boolean', { name: 'auto_reconnect' })
  autoReconnect: boolean;

  @Column('text', { default: 'auto' })
  era: Era;

  /** Maximum number of calls per minute of each caller and tool; null: the limit of the deployment. */
  @Column('integer', { name: 'calls_per_minute', nullable: true })
  callsPerMinute: number | null;

  /** Tool names at the server; empty: all tools (AE-21, AE-23). */
  @Column('jsonb', { name: 'tool_allow_list' })
  toolAllowList: string[];

  @Column('jsonb', { name: 'resource_allow_list' })
  resourceAllowList: string[];

  /** Configured answer to `roots/list`; empty: the roots of the caller (AE-65, AE-78). */
  @Column('json', { default: () => "'[]'" })
  roots: Root[];

  /** `config`: the operator has declared the server in a configuration file. */
  @Column('text', { default: 'api' })
  source: 'api' | 'config';

  /** A `json` column keeps the bytes, because schemas are relayed unchanged. */
  @Column('json')
  offer: Offer;

  @Column('text', { name: 'tool_changes', default: 'hold-changed' })
  toolChanges: ToolChanges;

  /**
   * Includes removed tools, so that a tool that comes back is recognized. Empty until a tool differs for the first
   * time: then the stored offer counts as approved.
   */
  @Column('json', { name: 'approved_tools', default: () => "'[]'" })
  approvedTools: ToolPin[];

  @Column('json', { name: 'quarantined_tools', default: () => "'[]'" })
  quarantinedTools: QuarantinedTool[];

  @Column('integer', { default: 1 })
  revision: number;

  @CreateDateColumn({ type: 'timestamptz', name: 'created_at' })
  createdAt: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt: Date;
}
