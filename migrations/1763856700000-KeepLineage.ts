import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Who delegated to whom before a task, so that its own calls carry it on in whichever process they are made. */
export class KeepLineage1763856700000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_tasks add column lineage json');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
