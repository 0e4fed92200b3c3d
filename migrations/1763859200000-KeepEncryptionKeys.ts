import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Public keys of published agents, to which senders encrypt. */
export class KeepEncryptionKeys1763859200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`alter table published_agents add column keys jsonb not null default '[]'`);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
