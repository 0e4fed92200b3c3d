import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The queries of the addresses of cards, sealed. Rows from before keep theirs in card_url until a card that changed is fetched. */
export class SealCardQueries1763858400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('alter table agent_cards add column card_query text');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
