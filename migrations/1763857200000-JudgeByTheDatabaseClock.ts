import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Times by the clock of the database: since when a task is in its state and an audit event waits for its seal, and the
 * order of the tasks of a context. `status_timestamp` and the ids use the clocks of the processes, which may differ by
 * minutes. A task that never changed has none, so that its row stays small enough for an update on its page.
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
