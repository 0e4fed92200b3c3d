import type { TestGateway } from './gateway.js';

const tables = [
  'audit_events',
  'audit_chain',
  'audit_checkpoints',
  'audit_pending',
  'audit_anchors',
  'audit_timestamps',
  'audit_subject_keys',
  'signing_keys',
];

/** Changes tables with the rights of their owner: the triggers are disabled, so none refuses the change. */
export async function tamper(gateway: TestGateway, statements: readonly string[]): Promise<void> {
  for (const table of tables) await gateway.sql(`alter table ${table} disable trigger all`);
  for (const statement of statements) await gateway.sql(statement);
  for (const table of tables) await gateway.sql(`alter table ${table} enable trigger all`);
}

/** Runs work on tables that were tampered with, then restores the tables. Nothing else may write at the same time. */
export async function tampered(
  gateway: TestGateway,
  statements: readonly string[],
  work: () => Promise<void>,
): Promise<void> {
  for (const table of tables) await gateway.sql(`create table kept_${table} as table ${table}`);
  await tamper(gateway, statements);
  try {
    await work();
  } finally {
    const back = tables.flatMap((table) => [`truncate ${table}`, `insert into ${table} select * from kept_${table}`]);
    await tamper(gateway, back);
    for (const table of tables) await gateway.sql(`drop table kept_${table}`);
  }
}
