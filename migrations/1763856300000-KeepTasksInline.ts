import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Compresses a task, or moves it to TOAST, only from 8 KB on instead of 2 KB: most tasks are read and written whole,
 * and compression cost 7 % of the PostgreSQL time of a blocking send.
 */
export class KeepTasksInline1763856300000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_tasks set (toast_tuple_target = 8160)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
