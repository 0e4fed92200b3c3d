import type { MigrationInterface, QueryRunner } from 'typeorm';

/** In which revisions of MCP a server is spoken to. */
export class NameErasOfServers1763858200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`alter table mcp_servers add era text not null default 'auto'`);
    await runner.query(
      `alter table mcp_servers add constraint ck_mcp_servers_era check (era in ('auto', 'legacy', 'modern'))`,
    );
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
