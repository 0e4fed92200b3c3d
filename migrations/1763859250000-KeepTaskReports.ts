import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The ids of applied reports leave the row of their task, which was written whole for each report. The tasks of an
 * earlier version keep those that they have.
 */
export class KeepTaskReports1763859250000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      create table a2a_task_reports (
        task_id uuid not null,
        report_id text not null,
        constraint pk_a2a_task_reports primary key (task_id, report_id)
      )`);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
