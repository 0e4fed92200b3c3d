import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Pg } from '../../platform/database/pg.js';
import { positional } from '../../platform/database/sql.js';
import { snapshotIdleTimeout } from '../../platform/http/export-stream.js';
import type { OrgTable } from '../org-data.types.js';

const perBatch = 500;
/** Small, because rows of tasks may be large. */
const perFetch = 20;

/** One row of an export, with its data as JSON text. */
export interface ExportedRow {
  readonly kind: string;
  readonly data: string;
}

/**
 * Reads and deletes the rows of an org in all tables. Names of tables and columns come from the code, never from a
 * caller.
 */
@Injectable()
export class OrgDataStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Deletes a limited number of rows and their child rows in one statement, so that a process that dies leaves no
   * half-deleted row.
   */
  async dropBatch({ table, children = [] }: OrgTable, orgId: string): Promise<number> {
    const key = children.length > 0 ? 'id' : 'ctid';
    const deletesOfChildren = children.map(
      (child, index) => `,
      child${index} as (delete from ${child.table} where ${child.column} in (select key from batch))`,
    );
    const rows = await this.pg.rows(
      `org-drop-${table}`,
      `
      with batch as materialized (
        select ${key} as key from ${table} where org_id = :orgId limit ${perBatch}
      )${deletesOfChildren.join('')}
      delete from ${table}
      where org_id = :orgId and ${key} in (select key from batch)
      returning 1`,
      { orgId },
    );
    return rows.length;
  }

  /** Returns the ids of orgs that are deleted and still have rows. */
  async deletedOrgs(): Promise<string[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'orgs-deleted',
      `
      select id
      from orgs
      where deleted_at is not null and purged_at is null
      order by deleted_at`,
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Marks an org as purged and clears its name; only its id stays. Returns false in the first minute after the
   * deletion, because running work may still write rows.
   */
  async markPurged(orgId: string): Promise<boolean> {
    const rows = await this.pg.rows(
      'org-purged',
      `
      update orgs
      set purged_at = now(), name = '', default_agent = null
      where id = :orgId and deleted_at < now() - interval '1 minute'
      returning 1`,
      { orgId },
    );
    return rows.length > 0;
  }

  /** Reads all rows as of one moment, in batches, at the speed of the reader. */
  async *rows(tables: readonly OrgTable[], orgId: string): AsyncGenerator<ExportedRow[]> {
    const client = await this.pg.connect();
    let failure: Error | undefined;
    try {
      await client.query('begin isolation level repeatable read read only');
      await client.query(`set local idle_in_transaction_session_timeout = '${snapshotIdleTimeout}'`);
      for (const owned of tables) yield* this.tableRows(client, owned, orgId);
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      await client.query('rollback').catch((error: Error) => (failure = error));
      client.release(failure);
    }
  }

  private async *tableRows(client: PoolClient, owned: OrgTable, orgId: string): AsyncGenerator<ExportedRow[]> {
    const { table, kind, children = [] } = owned;
    if (kind === undefined) return;
    yield* this.fetchRows(
      client,
      kind,
      `${await columnsOf(client, owned)} from ${table} t where t.org_id = :orgId`,
      orgId,
    );
    for (const child of children) {
      if (child.kind === undefined) continue;
      const columns = await columnsOf(client, child);
      const from = `${child.table} t join ${table} p on p.id = t.${child.column} where p.org_id = :orgId`;
      yield* this.fetchRows(client, child.kind, `${columns} from ${from}`, orgId);
    }
  }

  private async *fetchRows(
    client: PoolClient,
    kind: string,
    select: string,
    orgId: string,
  ): AsyncGenerator<ExportedRow[]> {
    const declare = `declare part no scroll cursor for select row_to_json(x)::text as data from (select ${select}) x`;
    await client.query(positional(declare, { orgId }));
    for (;;) {
      const { rows } = await client.query<{ data: string }>(`fetch ${perFetch} from part`);
      if (rows.length > 0) yield rows.map(({ data }) => ({ kind, data }));
      if (rows.length < perFetch) break;
    }
    await client.query('close part');
  }
}

/** Returns the columns of a table that an export may contain. */
async function columnsOf(
  client: PoolClient,
  { table, withheld = [], withoutQuery = [] }: Pick<OrgTable, 'table' | 'withheld' | 'withoutQuery'>,
): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    positional(
      `
      select attname as name
      from pg_attribute
      where attrelid = to_regclass(:table) and attnum > 0 and not attisdropped and attname <> all(:withheld)
      order by attnum`,
      { table, withheld },
    ),
  );
  return rows
    .map(({ name }) => (withoutQuery.includes(name) ? `split_part(t."${name}", '?', 1) as "${name}"` : `t."${name}"`))
    .join(', ');
}
