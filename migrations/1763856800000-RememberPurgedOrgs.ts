import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When the last row of a deleted org was dropped; null while there is something left to drop. */
export class RememberPurgedOrgs1763856800000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table orgs add column purged_at timestamptz');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
