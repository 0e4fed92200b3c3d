import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sealed queries of card URLs. Existing rows keep theirs in `card_url` until a changed card is fetched. */
export class SealCardQueries1763858400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table agent_cards add column card_query text');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
