import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The body of an audit event lacks the members that have a column. A process of an earlier build would seal it without
 * them, and its hash could never be verified. So each new link says that its hash covers the whole event; earlier links
 * are not checked.
 */
export class RefuseEarlierSealers1763859400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `alter table audit_chain
         add column whole boolean,
         add constraint ck_audit_chain_whole check (whole is true) not valid`,
    );
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
