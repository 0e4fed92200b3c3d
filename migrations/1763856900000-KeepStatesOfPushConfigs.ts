import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Since when a configuration has failed, and configurations by their org. */
export class KeepStatesOfPushConfigs1763856900000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table push_configs add column failing_since timestamptz');
    await runner.query(`update push_configs set failing_since = now() where state = 'failing'`);
    await runner.query('create index ix_push_configs_org on push_configs (org_id, created_at, task_id, id)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
