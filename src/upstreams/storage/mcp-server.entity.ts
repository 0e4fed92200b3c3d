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

/** An MCP server that an org has registered. */
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

  /** What its tools are prefixed with, and what policies call it. */
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

  /** Sealed: its headers, or the environment of its program. */
  @Column('text', { nullable: true })
  secrets: string | null;

  /** For people: values never leave. */
  @Column('jsonb', { name: 'header_names' })
  headerNames: string[];

  @Column('jsonb', { name: 'env_names' })
  envNames: string[];

  @Column('text', { name: 'per_user', default: 'none' })
  userCredentials: UserCredentials;

  /** The headers that a credential of a user is made of. */
  @Column('jsonb', { name: 'user_headers', default: ['Authorization'] })
  userHeaders: string[];

  @Column('integer', { name: 'timeout_ms' })
  timeoutMs: number;

  @Column('boolean', { name: 'auto_reconnect' })
  autoReconnect: boolean;

  @Column('text', { default: 'auto' })
  era: Era;

  /** How often each caller may call each of its tools; null: as the deployment says. */
  @Column('integer', { name: 'calls_per_minute', nullable: true })
  callsPerMinute: number | null;

  /** Names as the server has them; empty: all (AE-21, AE-23). */
  @Column('jsonb', { name: 'tool_allow_list' })
  toolAllowList: string[];

  @Column('jsonb', { name: 'resource_allow_list' })
  resourceAllowList: string[];

  /** What it is told when it asks for roots; empty: whatever its caller has (AE-65, AE-78). */
  @Column('json', { default: () => "'[]'" })
  roots: Root[];

  /** `config`: the operator has written it down. */
  @Column('text', { default: 'api' })
  source: 'api' | 'config';

  /** As its bytes came, for schemas are relayed unchanged. */
  @Column('json')
  offer: Offer;

  @Column('text', { name: 'tool_changes', default: 'hold-changed' })
  toolChanges: ToolChanges;

  /** Also of tools that are gone: one that comes back is known. Empty until a tool differs: what is offered is approved. */
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
