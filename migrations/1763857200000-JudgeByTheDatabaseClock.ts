import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Since when a task is in its state and an audit event waits for its seal, and which task of a context came first, by the clock of the database: `status_timestamp` and the ids
 * are by those of the processes, which may differ by minutes. A task that
 * is as it was made has none, so that its row stays small enough to be claimed where it lies.
 */
export class JudgeByTheDatabaseClock1763857200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_tasks add column status_since timestamptz');
    await runner.query('update a2a_tasks set status_since = status_timestamp where next_at is not null');
    await runner.query('alter table audit_pending add column since timestamptz not null default now()');
    await runner.query('drop index ix_a2a_tasks_context');
    await runner.query('create index ix_a2a_tasks_context on a2a_tasks (context_id, created_at, id)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
