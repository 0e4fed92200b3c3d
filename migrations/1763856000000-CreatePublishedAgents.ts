import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Agents of our own. An archived one keeps its row, for its tasks name it, and frees its name and its handle. */
export class CreatePublishedAgents1763856000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `create table published_agents (
     id uuid not null constraint pk_published_agents primary key,
     org_id uuid not null constraint fk_published_agents_org references orgs (id),
     name text not null,
     handle text,
     description text not null,
     executor jsonb not null,
     executor_secret text,
     enabled boolean not null default false,
     accept_cleartext boolean,
     publish_to_card boolean not null default false,
     history text not null default 'context'
       constraint ck_published_agents_history check (history in ('context', 'agent')),
     card jsonb not null,
     source text not null default 'api'
       constraint ck_published_agents_source check (source in ('api', 'config', 'folder', 'conformance')),
     revision integer not null default 1,
     created_at timestamptz not null default now(),
     updated_at timestamptz not null default now(),
     archived_at timestamptz
   )`,
  `create unique index uq_published_agents_name on published_agents (org_id, name) where archived_at is null`,
  `create unique index uq_published_agents_handle on published_agents (org_id, handle) where archived_at is null`,
];
