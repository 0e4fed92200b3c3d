import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Declared MCP servers, the roots of a server, and answers to calls that wait in another process. */
export class DeclareMcpServers1763857500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `alter table mcp_servers add source text not null default 'api', add roots json not null default '[]',
     add constraint ck_mcp_servers_source check (source in ('api', 'config'))`,
  `create index ix_mcp_servers_declared on mcp_servers (id) where source = 'config'`,
  `create table mcp_held_answers (
     id uuid not null,
     org_id uuid not null,
     call_id uuid not null,
     answers json not null,
     outcome json,
     created_at timestamptz not null default now(),
     constraint pk_mcp_held_answers primary key (id),
     constraint fk_mcp_held_answers_org foreign key (org_id) references orgs (id)
   )`,
  'create index ix_mcp_held_answers_call on mcp_held_answers (call_id)',
];
