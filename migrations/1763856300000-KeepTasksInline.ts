import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A task is compressed, or moved aside, from 8 KB on instead of 2: most of them are read and written whole, and compressing each cost 7 %
 * of what PostgreSQL does for a blocking send.
 */
export class KeepTasksInline1763856300000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_tasks set (toast_tuple_target = 8160)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
