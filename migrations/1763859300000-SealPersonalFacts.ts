import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Keys that seal the personal facts of audit events, one or more for each subject of an org. */
export class SealPersonalFacts1763859300000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `create table audit_subject_keys (
         id uuid not null,
         org_id uuid not null,
         subject text not null,
         sealed text not null,
         created_at timestamptz not null default now(),
         constraint pk_audit_subject_keys primary key (id)
       )`,
    );
    await runner.query('create index ix_audit_subject_keys_subject on audit_subject_keys (org_id, subject)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
