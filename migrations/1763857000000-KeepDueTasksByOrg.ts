import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Index of due tasks by org, so that no org waits behind the backlog of another. Open tasks are counted with it. */
export class KeepDueTasksByOrg1763857000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('create index ix_a2a_tasks_open on a2a_tasks (org_id, next_at) where next_at is not null');
    await runner.query('drop index ix_a2a_tasks_due');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
