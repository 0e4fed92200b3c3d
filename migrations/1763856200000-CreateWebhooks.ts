import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Push configurations of tasks, their deliveries, and each attempt. Without foreign keys: the hot statement of tasks
 * writes the deliveries.
 */
export class CreateWebhooks1763856200000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `create table push_configs (
     task_id uuid not null,
     id text not null,
     org_id uuid not null,
     url text not null,
     token text,
     authentication text,
     format text not null constraint ck_push_configs_format check (format in ('v1', 'v0.3', 'task', 'reyn')),
     state text not null default 'active'
       constraint ck_push_configs_state check (state in ('active', 'failing', 'disabled')),
     reason text,
     created_at timestamptz not null default now(),
     constraint pk_push_configs primary key (task_id, id)
   )`,
  `create index ix_push_configs_created on push_configs (created_at)`,
  `create table webhook_deliveries (
     id uuid not null constraint pk_webhook_deliveries primary key,
     org_id uuid not null,
     task_id uuid not null,
     config_id text not null,
     seq integer not null,
     status text not null default 'pending'
       constraint ck_webhook_deliveries_status check (status in ('pending', 'delivered', 'dead', 'skipped')),
     attempts integer not null default 0,
     next_at timestamptz not null default now(),
     lease_owner integer,
     lease_until timestamptz,
     body text,
     last_status integer,
     last_error text,
     created_at timestamptz not null default now(),
     ended_at timestamptz
   )`,
  `create unique index uq_webhook_deliveries_event on webhook_deliveries (task_id, config_id, seq)`,
  `create index ix_webhook_deliveries_pending on webhook_deliveries (task_id, config_id, seq) where status = 'pending'`,
  `create index ix_webhook_deliveries_due on webhook_deliveries (next_at) where status = 'pending'`,
  `create index ix_webhook_deliveries_created on webhook_deliveries (created_at)`,
  `create table webhook_attempts (
     delivery_id uuid not null,
     number integer not null,
     at timestamptz not null default now(),
     duration_ms integer not null,
     status integer,
     error text,
     reply text,
     constraint pk_webhook_attempts primary key (delivery_id, number)
   )`,
];
