import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Approvals of acts: questions to people, their answers, and the use of each answer. */
export class CreateApprovals1763858650000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `create table approvals (
         id uuid not null constraint pk_approvals primary key,
         org_id uuid not null constraint fk_approvals_org references orgs (id),
         digest text not null,
         state text not null default 'pending',
         caller text not null,
         verb text not null,
         action text not null,
         resource text not null,
         sealed text not null,
         policies jsonb not null,
         groups jsonb not null,
         lifetime_seconds integer not null,
         requested_at timestamptz not null default now(),
         expires_at timestamptz not null,
         decided_at timestamptz,
         decided_by text,
         reason text,
         uses_left integer not null default 1,
         used_at timestamptz,
         used_by uuid,
         constraint ck_approvals_state check (state in ('pending', 'approved', 'denied', 'used', 'expired'))
       )`,
    );
    await runner.query(
      `create unique index uq_approvals_open on approvals (org_id, digest)
       where state in ('pending', 'approved', 'denied')`,
    );
    await runner.query('create index ix_approvals_org on approvals (org_id, id)');
    await runner.query('create index ix_approvals_expiry on approvals (expires_at)');
    await runner.query(`create index ix_approvals_waiting on approvals (org_id, caller) where state = 'pending'`);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
