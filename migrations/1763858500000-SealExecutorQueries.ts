import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sealed queries of executor URLs. Existing rows keep theirs in `executor` until the executor is given again. */
export class SealExecutorQueries1763858500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table published_agents add column executor_query text');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
