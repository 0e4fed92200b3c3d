import type { MigrationInterface, QueryRunner } from 'typeorm';

/** MCP servers of an org, and the last known offer of each. */
export class KeepMcpServers1763857300000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `create table mcp_servers (
     id uuid not null,
     org_id uuid not null,
     server_id text not null,
     name text not null,
     transport text not null,
     url text,
     program jsonb,
     secrets text,
     header_names jsonb not null,
     env_names jsonb not null,
     timeout_ms integer not null,
     auto_reconnect boolean not null,
     tool_allow_list jsonb not null,
     resource_allow_list jsonb not null,
     offer json not null,
     revision integer not null default 1,
     created_at timestamptz not null default now(),
     updated_at timestamptz not null default now(),
     constraint pk_mcp_servers primary key (id),
     constraint fk_mcp_servers_org foreign key (org_id) references orgs (id),
     constraint ck_mcp_servers_transport check (transport in ('streamable-http', 'sse', 'websocket', 'stdio')),
     constraint ck_mcp_servers_place
       check ((transport = 'stdio') = (program is not null) and (transport = 'stdio') = (url is null))
   )`,
  'create unique index uq_mcp_servers_server on mcp_servers (org_id, server_id)',
];
