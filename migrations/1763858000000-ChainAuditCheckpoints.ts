import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Numbers and chains the checkpoints of each org, and stores the progress of each anchor outside the database. Existing
 * rows have the number 0. During an upgrade, processes of the previous version still write such rows and check only
 * `signature`.
 */
export class ChainAuditCheckpoints1763858000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `alter table audit_checkpoints
         add column number bigint not null default 0,
         add column prev_hash text,
         add column removed_to bigint,
         add column chain_signature text,
         drop constraint pk_audit_checkpoints,
         add constraint pk_audit_checkpoints primary key (org_id, number, sequence, cut)`,
    );
    await runner.query(
      'create unique index uq_audit_checkpoints_number on audit_checkpoints (org_id, number) where number > 0',
    );
    // The key no longer begins with the sequence, and the sealer looks for the newest cut at every batch.
    await runner.query('create index ix_audit_checkpoints_cut on audit_checkpoints (org_id, sequence) where cut');
    await runner.query(
      `create table audit_anchors (
         org_id uuid not null,
         sink text not null,
         number bigint not null,
         at timestamptz not null default now(),
         constraint pk_audit_anchors primary key (org_id, sink)
       )`,
    );
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
