import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Remote tasks that do not end at once, until their end is delivered. */
export class CreateContinuations1763856600000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `create table a2a_continuations (
     id uuid not null,
     org_id uuid not null,
     task_id uuid not null,
     agent_id uuid not null,
     agent_slug text not null,
     agent_url text not null,
     remote_task_id text not null,
     principal json not null,
     request_id text not null,
     act_id uuid,
     status text not null,
     attempts integer not null default 0,
     polls integer not null default 0,
     deadline_at timestamptz not null,
     next_at timestamptz,
     last_error text,
     created_at timestamptz not null default now(),
     updated_at timestamptz not null default now(),
     ended_at timestamptz,
     constraint pk_a2a_continuations primary key (id),
     constraint ck_a2a_continuations_status
       check (status in ('pending', 'processing', 'delivering', 'completed', 'failed'))
   )`,
  'create unique index uq_a2a_continuations_remote on a2a_continuations (task_id, agent_url, remote_task_id)',
  'create index ix_a2a_continuations_org on a2a_continuations (org_id, created_at, id)',
  'create index ix_a2a_continuations_open on a2a_continuations (org_id, created_at, id) where ended_at is null',
  'create index ix_a2a_continuations_ended on a2a_continuations (ended_at) where ended_at is not null',
];
