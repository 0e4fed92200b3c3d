import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The lineage of a task, so that the calls of the task carry it on from every process. */
export class KeepLineage1763856700000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_tasks add column lineage json');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
