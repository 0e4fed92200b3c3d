import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Answers that go to a conversation thread, until there is a receipt for each. */
export class KeepThreadAnswers1763856960000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `create table thread_answers (
     id uuid not null,
     org_id uuid not null,
     task_id uuid not null,
     url text not null,
     thread_id text not null,
     thread_key text not null,
     token text,
     status text not null default 'held',
     payload json,
     seq integer not null default 0,
     owns_progress boolean not null default false,
     attempts integer not null default 0,
     receipt json,
     last_error text,
     next_at timestamptz not null default now(),
     lease_owner integer,
     lease_until timestamptz,
     lease_epoch integer not null default 0,
     created_at timestamptz not null default now(),
     ended_at timestamptz,
     constraint pk_thread_answers primary key (id),
     constraint ck_thread_answers_status
       check (status in ('held', 'waiting', 'delivering', 'received', 'delivered', 'dead', 'answered')),
     constraint ck_thread_answers_scrubbed
       check (ended_at is null or (token is null and payload is null and not owns_progress))
   )`,
  'create unique index uq_thread_answers_task on thread_answers (task_id)',
  'create unique index uq_thread_answers_progress on thread_answers (org_id, thread_key) where owns_progress',
  'create index ix_thread_answers_org on thread_answers (org_id)',
  'create index ix_thread_answers_open on thread_answers (next_at) where ended_at is null',
  'create index ix_thread_answers_ended on thread_answers (ended_at) where ended_at is not null',
];
