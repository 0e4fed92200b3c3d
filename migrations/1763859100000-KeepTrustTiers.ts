import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The trust tier of each task. Earlier tasks came as cleartext, or the tier of their sender is unknown: tier 0. */
export class KeepTrustTiers1763859100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table a2a_tasks add column trust_tier smallint not null default 0');
    // A claimed version is longer than the row before it, by its lease.
    await runner.query('alter table a2a_tasks set (fillfactor = 46)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
