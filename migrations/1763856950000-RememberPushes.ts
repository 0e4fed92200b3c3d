import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Pushes of remote agents that no look at the remote task has followed yet. */
export class RememberPushes1763856950000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `create table remote_pushes (
     task_id uuid not null,
     org_id uuid not null,
     at timestamptz not null default now(),
     constraint pk_remote_pushes primary key (task_id)
   )`,
  'create index ix_remote_pushes_org on remote_pushes (org_id)',
  'create index ix_remote_pushes_at on remote_pushes (at)',
];
