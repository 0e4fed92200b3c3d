import type { MigrationInterface, QueryRunner } from 'typeorm';

/** State of the signatures of an agent card, and the pinned key of the agent. */
export class PinCardKeys1763858100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table agent_cards add signature jsonb, add pinned_key jsonb');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
