import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Keys of the acts that used an approval, so that a repeated attempt needs no second one. */
export class KeepAttemptsOfApprovals1763859600000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`alter table approvals add column used_for jsonb not null default '[]'`);
    await runner.query('create index ix_approvals_digest on approvals (org_id, digest)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
