import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which definitions of the tools of an MCP server were approved, and which wait for it. */
export class PinToolDefinitions1763857700000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `alter table mcp_servers add tool_changes text not null default 'hold-changed',
     add approved_tools json not null default '[]', add quarantined_tools json not null default '[]',
     add constraint ck_mcp_servers_tool_changes check (tool_changes in ('accept', 'hold-changed', 'hold-all'))`,
];
