import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The events of one commit become one row of the log, with the number of its first event. Earlier rows keep one event
 * each and stay valid.
 */
export class KeepEventsOfOneCommit1763858600000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_task_events add column first_seq integer');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
