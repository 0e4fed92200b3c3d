import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Input and output of calls, and calls as a list. Failed, running and routed calls are rare, so they have their own
 * index.
 */
export class KeepDispatches1763856500000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  `alter table a2a_task_instances
     add column pending boolean not null default false,
     add column input text,
     add column output text,
     add column task_id text,
     add column cost double precision`,
  'drop index ix_a2a_task_instances_org',
  'create index ix_a2a_task_instances_org on a2a_task_instances (org_id, started_at, id)',
  'create index ix_a2a_task_instances_caller on a2a_task_instances (org_id, caller, started_at, id)',
  'create index ix_a2a_task_instances_agent on a2a_task_instances (org_id, agent_id, started_at, id)',
  'drop index ix_a2a_task_instances_active',
  `create index ix_a2a_task_instances_active on a2a_task_instances (org_id, agent_id, expires_at)
     where status = 'active'`,
  `create index ix_a2a_task_instances_failed on a2a_task_instances (org_id, started_at, id) where status = 'failed'`,
  `create index ix_a2a_task_instances_routed on a2a_task_instances (org_id, started_at, id)
     where work_type not like 'explicit:%'`,
];
