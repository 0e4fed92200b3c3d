import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Timestamps of checkpoints by an outside authority (RFC 3161). As checkpoints, they are only inserted. */
export class StampCheckpoints1763859500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `create table audit_timestamps (
         org_id uuid not null,
         number bigint not null,
         der bytea not null,
         constraint pk_audit_timestamps primary key (org_id, number)
       )`,
    );
    await runner.query(
      `create trigger audit_timestamps_insert_only before update or delete or truncate on audit_timestamps
       for each statement execute function refuse_change()`,
    );
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
