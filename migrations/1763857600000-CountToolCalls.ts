import type { MigrationInterface, QueryRunner } from 'typeorm';

/** How often each caller called each tool in the running minute, where that is limited. */
export class CountToolCalls1763857600000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of statements) await runner.query(statement);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations go forward only'));
  }
}

const statements = [
  'alter table mcp_servers add calls_per_minute integer',
  `create table tool_calls (
     org_id uuid not null,
     caller text not null,
     tool text not null,
     minute timestamptz not null,
     calls integer not null,
     constraint pk_tool_calls primary key (org_id, caller, tool),
     constraint fk_tool_calls_org foreign key (org_id) references orgs (id)
   ) with (fillfactor = 70)`,
  'create index ix_tool_calls_minute on tool_calls (minute)',
];
