import type { MigrationInterface, QueryRunner } from 'typeorm';

/** MCP servers that know each user by a credential of its own, and these credentials. */
export class KeepUserCredentials1763857800000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `alter table mcp_servers add per_user text not null default 'none',
     add user_headers jsonb not null default '["Authorization"]',
     add constraint ck_mcp_servers_per_user
       check (per_user in ('none', 'optional', 'required') and (per_user = 'none' or transport <> 'stdio'))`,
  `create table mcp_user_credentials (
     id uuid not null,
     org_id uuid not null,
     server uuid not null,
     caller text not null,
     origin text not null,
     headers jsonb not null,
     sealed text not null,
     offer json not null,
     approved_tools json not null default '[]',
     quarantined_tools json not null default '[]',
     revision integer not null default 1,
     created_at timestamptz not null default now(),
     constraint pk_mcp_user_credentials primary key (id),
     constraint fk_mcp_user_credentials_org foreign key (org_id) references orgs (id),
     constraint fk_mcp_user_credentials_server foreign key (server) references mcp_servers (id) on delete cascade
   )`,
  'create unique index uq_mcp_user_credentials_caller on mcp_user_credentials (server, caller)',
  'create index ix_mcp_user_credentials_org on mcp_user_credentials (org_id, caller)',
];
