import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The names by which tokens of other systems call an org, such as the domain of its mail. */
export class AddOrgDomains1763858300000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `create table org_domains (
         domain text not null constraint pk_org_domains primary key,
         org_id uuid not null constraint fk_org_domains_org references orgs (id)
       )`,
    );
    await runner.query('create index ix_org_domains_org on org_domains (org_id)');
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}
