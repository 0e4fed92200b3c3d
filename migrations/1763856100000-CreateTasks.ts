import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Tasks of published agents with their event log. Without foreign keys: the hot statement writes both, and rows of
 * orgs and agents are only marked, never deleted.
 */
export class CreateTasks1763856100000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const states = [
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'rejected',
  'input-required',
  'auth-required',
];

const statements = [
  `create table a2a_tasks (
     id uuid not null constraint pk_a2a_tasks primary key,
     org_id uuid not null,
     agent_id uuid not null,
     agent_name text not null,
     context_id text not null,
     owner text not null,
     principal json not null,
     depth integer not null default 0,
     status_state text not null
       constraint ck_a2a_tasks_state check (status_state in (${states.map((state) => `'${state}'`).join(', ')})),
     status_message json,
     status_timestamp timestamptz not null,
     history json not null,
     artifacts json not null,
     metadata json,
     seq integer not null,
     folded_seq integer not null,
     memo json,
     next_at timestamptz,
     lease_owner integer,
     lease_until timestamptz,
     lease_epoch integer not null default 0,
     crashes integer not null default 0,
     created_at timestamptz not null default now(),
     updated_at timestamptz not null default now()
   )`,
  `create index ix_a2a_tasks_agent on a2a_tasks (org_id, agent_id, status_timestamp, id)`,
  `create index ix_a2a_tasks_owner on a2a_tasks (org_id, agent_id, owner, status_timestamp, id)`,
  // What is not completed is rare, and what operators look for; a task that ends well at once never gets here.
  `create index ix_a2a_tasks_state on a2a_tasks (org_id, agent_id, status_state, status_timestamp, id)
     where status_state <> 'completed'`,
  `create index ix_a2a_tasks_context on a2a_tasks (context_id, id)`,
  `create index ix_a2a_tasks_due on a2a_tasks (next_at) where next_at is not null`,
  `create table a2a_task_events (
     task_id uuid not null,
     seq integer not null,
     body json not null,
     terminal boolean not null default false,
     at timestamptz not null,
     constraint pk_a2a_task_events primary key (task_id, seq)
   )`,
  // Makes a second end of a task impossible, even for a bug (I2).
  `create unique index uq_a2a_task_events_end on a2a_task_events (task_id) where terminal`,
  `create table a2a_idempotency_keys (
     org_id uuid not null,
     agent_id uuid not null,
     owner text not null,
     key text not null,
     payload_hash text not null,
     task_id uuid not null,
     answer json,
     created_at timestamptz not null default now(),
     constraint pk_a2a_idempotency_keys primary key (org_id, agent_id, owner, key)
   )`,
  `create index ix_a2a_idempotency_keys_task on a2a_idempotency_keys (task_id)`,
];
