import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The trust tier of an org, and the messages that it has sent today. The org of the operator has the highest tier. The
 * index finds the agent of a handle that names a host, in all orgs.
 */
export class AddTrustTiers1763858700000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `alter table orgs
         add column trust_tier smallint not null default 1
           constraint ck_orgs_trust_tier check (trust_tier between 0 and 3)`,
    );
    await runner.query(`update orgs set trust_tier = 3 where slug = 'default'`);
    await runner.query(
      `create table org_messages (
         org_id uuid not null constraint pk_org_messages primary key
           constraint fk_org_messages_org references orgs (id),
         day date not null,
         messages integer not null
       ) with (fillfactor = 50)`,
    );
    await runner.query(
      `create index ix_published_agents_host_handle on published_agents (handle)
         where archived_at is null and handle like '%@%'`,
    );
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
