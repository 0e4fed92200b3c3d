import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Capabilities, log levels, answers and resource subscriptions of MCP clients. */
export class KnowMcpClients1763857400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `alter table mcp_sessions add capabilities json not null default '{}', add log_level text`,
  `create table mcp_answers (
     id uuid not null,
     session_id uuid not null,
     answer json not null,
     created_at timestamptz not null default now(),
     constraint pk_mcp_answers primary key (id),
     constraint fk_mcp_answers_session foreign key (session_id) references mcp_sessions (id) on delete cascade
   )`,
  'create index ix_mcp_answers_session on mcp_answers (session_id)',
  `create table mcp_subscriptions (
     session_id uuid not null,
     server uuid not null,
     uri text not null,
     constraint pk_mcp_subscriptions primary key (session_id, server, uri),
     constraint fk_mcp_subscriptions_session foreign key (session_id) references mcp_sessions (id) on delete cascade,
     constraint fk_mcp_subscriptions_server foreign key (server) references mcp_servers (id) on delete cascade
   )`,
  'create index ix_mcp_subscriptions_server on mcp_subscriptions (server)',
];
