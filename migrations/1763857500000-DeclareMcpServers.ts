import type { MigrationInterface, QueryRunner } from 'typeorm';

/** MCP servers that the operator has written down, and what a server is told of its caller's roots. */
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
];
