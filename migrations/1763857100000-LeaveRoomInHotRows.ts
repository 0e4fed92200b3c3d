import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A claim changes no indexed column: with room for one more version on its page, a row is changed there and no index is
 * touched, which costs PostgreSQL a third (measured on floods of asynchronous sends).
 */
export class LeaveRoomInHotRows1763857100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_tasks set (fillfactor = 50)');
    await runner.query('alter table webhook_deliveries set (fillfactor = 70)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
