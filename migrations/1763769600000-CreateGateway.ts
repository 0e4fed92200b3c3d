import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Orgs and their credentials, policies, registered agents with their load and outcomes, and the audit. */
export class CreateGateway1763769600000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...identity, ...policy, ...audit, ...registry, ...bridge]) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const identity = [
  `create table orgs (
     id uuid not null constraint pk_orgs primary key,
     slug text not null constraint uq_orgs_slug unique,
     name text not null,
     default_agent text,
     tool_timeout_ms integer,
     tool_names text,
     policy_version bigint not null default 0,
     created_at timestamptz not null default now(),
     updated_at timestamptz not null default now(),
     deleted_at timestamptz
   )`,
  `create table org_secrets (
     id uuid not null constraint pk_org_secrets primary key,
     org_id uuid not null constraint fk_org_secrets_org references orgs (id),
     sealed text not null,
     created_at timestamptz not null default now(),
     retires_at timestamptz
   )`,
  `create index ix_org_secrets_org on org_secrets (org_id)`,
  `create table members (
     org_id uuid not null constraint fk_members_org references orgs (id),
     sub text not null,
     role text not null constraint ck_members_role check (role in ('viewer', 'member', 'admin')),
     groups text[] not null default '{}',
     active boolean not null default true,
     created_at timestamptz not null default now(),
     constraint pk_members primary key (org_id, sub)
   )`,
  `create table api_keys (
     id uuid not null constraint pk_api_keys primary key,
     org_id uuid not null constraint fk_api_keys_org references orgs (id),
     name text not null,
     role text not null constraint ck_api_keys_role check (role in ('viewer', 'member', 'admin')),
     groups text[] not null default '{}',
     agent text,
     secret_hash text not null constraint uq_api_keys_hash unique,
     hint text not null,
     expires_at timestamptz,
     revoked_at timestamptz,
     created_at timestamptz not null default now()
   )`,
  `create index ix_api_keys_org on api_keys (org_id, created_at)`,
  `create table revoked_tokens (
     org_id uuid not null constraint fk_revoked_tokens_org references orgs (id),
     jti text not null,
     expires_at timestamptz not null,
     constraint pk_revoked_tokens primary key (org_id, jti)
   )`,
];

const policy = [
  `create table policies (
     id uuid not null constraint pk_policies primary key,
     org_id uuid not null constraint fk_policies_org references orgs (id),
     name text not null,
     version integer not null default 1,
     text text not null,
     source text not null default 'api',
     template jsonb,
     created_at timestamptz not null default now(),
     updated_at timestamptz not null default now(),
     constraint uq_policies_name unique (org_id, name)
   )`,
  `create table policy_versions (
     policy_id uuid not null,
     version integer not null,
     org_id uuid not null constraint fk_policy_versions_org references orgs (id),
     name text not null,
     text text not null,
     created_by text not null,
     created_at timestamptz not null default now(),
     constraint pk_policy_versions primary key (policy_id, version)
   )`,
];

const registry = [
  `create table agent_cards (
     id uuid not null constraint pk_agent_cards primary key,
     org_id uuid not null constraint fk_agent_cards_org references orgs (id),
     slug text not null,
     name text not null,
     url text not null,
     card_url text not null,
     trust_level text not null default 'standard'
       constraint ck_agent_cards_trust check (trust_level in ('untrusted', 'standard', 'trusted')),
     timeout_ms integer,
     card text,
     card_hash text,
     etag text,
     skills_since jsonb not null default '{}',
     credential text,
     credential_kind text,
     credential_hint text,
     source text not null default 'api',
     health text not null default 'unknown'
       constraint ck_agent_cards_health check (health in ('healthy', 'degraded', 'unreachable', 'unknown')),
     failures integer not null default 0,
     last_error text,
     quarantined_at timestamptz,
     last_fetched_at timestamptz,
     last_seen_at timestamptz,
     next_refresh_at timestamptz not null default now(),
     lease_until timestamptz,
     created_at timestamptz not null default now(),
     updated_at timestamptz not null default now(),
     constraint uq_agent_cards_slug unique (org_id, slug),
     constraint uq_agent_cards_url unique (org_id, url)
   )`,
  `create index ix_agent_cards_refresh on agent_cards (next_refresh_at)`,
  `create table agent_card_changes (
     id uuid not null constraint pk_agent_card_changes primary key,
     agent_id uuid not null constraint fk_agent_card_changes_agent references agent_cards (id) on delete cascade,
     org_id uuid not null,
     card_hash text not null,
     changes jsonb not null,
     detected_at timestamptz not null default now()
   )`,
  `create index ix_agent_card_changes_agent on agent_card_changes (agent_id, detected_at)`,
  `create table agent_outcomes (
     agent_id uuid not null constraint pk_agent_outcomes primary key,
     successes bigint not null default 0,
     failures bigint not null default 0,
     total_ms double precision not null default 0,
     updated_at timestamptz not null default now()
   )`,
  `create table a2a_task_instances (
     id uuid not null constraint pk_a2a_task_instances primary key,
     org_id uuid not null,
     agent_id uuid not null,
     agent_name text not null,
     verb text not null,
     skill_id text,
     session_id text not null,
     work_type text not null,
     status text not null constraint ck_a2a_task_instances_status check (status in ('active', 'completed', 'failed')),
     caller text not null,
     error_code text,
     duration_ms double precision,
     started_at timestamptz not null default now(),
     ended_at timestamptz,
     expires_at timestamptz not null
   )`,
  `create index ix_a2a_task_instances_org on a2a_task_instances (org_id, started_at)`,
  `create index ix_a2a_task_instances_active on a2a_task_instances (agent_id, expires_at) where status = 'active'`,
  `create table cost_events (
     id uuid not null constraint pk_cost_events primary key,
     org_id uuid not null,
     agent_id uuid not null,
     act_id uuid not null,
     amount double precision not null,
     at timestamptz not null default now()
   )`,
  `create index ix_cost_events_org on cost_events (org_id, at)`,
];

const audit = [
  `create table audit_events (
     id uuid not null constraint pk_audit_events primary key,
     org_id uuid not null,
     at timestamptz not null,
     type text not null,
     session_id text,
     event jsonb not null
   )`,
  `create index ix_audit_events_org on audit_events (org_id, at, id)`,
  `create table audit_chain (
     org_id uuid not null,
     sequence bigint not null,
     event_id uuid not null constraint uq_audit_chain_event unique,
     prev_hash text not null,
     hash text not null,
     constraint pk_audit_chain primary key (org_id, sequence)
   )`,
  `create table audit_pending (
     org_id uuid not null,
     event_id uuid not null,
     constraint pk_audit_pending primary key (org_id, event_id)
   )`,
  `create table audit_checkpoints (
     org_id uuid not null,
     sequence bigint not null,
     hash text not null,
     at timestamptz not null default now(),
     kid text not null,
     signature text not null,
     cut boolean not null default false,
     constraint pk_audit_checkpoints primary key (org_id, sequence, cut)
   )`,
  `create table signing_keys (
     kid text not null constraint pk_signing_keys primary key,
     public_jwk jsonb not null,
     sealed text not null,
     created_at timestamptz not null default now(),
     retired_at timestamptz
   )`,
  `create function refuse_change() returns trigger language plpgsql as $$
   begin
     if tg_op = 'DELETE' and current_setting('rialto.audit_cut', true) = 'on' then return null; end if;
     raise exception '% is insert-only', tg_table_name using errcode = 'insufficient_privilege';
   end $$`,
  ...['audit_events', 'audit_chain', 'audit_checkpoints'].map(
    (table) =>
      `create trigger ${table}_insert_only before update or delete or truncate on ${table}
       for each statement execute function refuse_change()`,
  ),
];

const bridge = [
  `create table mcp_sessions (
     id uuid not null constraint pk_mcp_sessions primary key,
     org_id uuid not null,
     principal text not null,
     protocol_version text not null,
     client text not null default '',
     created_at timestamptz not null default now(),
     last_seen_at timestamptz not null default now()
   )`,
  `create index ix_mcp_sessions_seen on mcp_sessions (last_seen_at)`,
];
