import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Signing secrets of the webhooks of an org, and its deliveries as a list; each delivery can be started again. */
export class CompleteWebhooks1763856400000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `create table webhook_secrets (
     id uuid not null,
     org_id uuid not null,
     sealed text not null,
     hint text not null,
     created_at timestamptz not null default now(),
     ends_at timestamptz,
     constraint pk_webhook_secrets primary key (id)
   )`,
  'create index ix_webhook_secrets_org on webhook_secrets (org_id, id)',
  'alter table webhook_deliveries add column earlier_attempts integer not null default 0',
  'create index ix_webhook_deliveries_org on webhook_deliveries (org_id, created_at, seq, id)',
  `create index ix_webhook_deliveries_open on webhook_deliveries (org_id, created_at, seq, id)
     where status <> 'delivered'`,
];
