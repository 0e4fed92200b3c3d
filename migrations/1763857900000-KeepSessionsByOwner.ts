import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds the sessions of a principal that were used longest ago. */
export class KeepSessionsByOwner1763857900000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('create index ix_mcp_sessions_owner on mcp_sessions (org_id, principal, last_seen_at)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
