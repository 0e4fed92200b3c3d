import type { ClientBase } from 'pg';
import { RialtoError } from '../../kernel/errors.js';
import { positional } from '../database/sql.js';
import type { SealedAt, Vault } from './vault.js';

/**
 * A column of sealed values. `row` and `org` are SQL expressions for the row and org that each value is bound to
 * (`SealedAt`).
 */
interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** The name of the table in `SealedAt`. */
  readonly place: string;
  readonly row: string;
  readonly org: string;
}

function columnOf(table: string, column: string, more: Partial<SealedColumn> = {}): SealedColumn {
  return { table, column, place: table, row: 'id::text', org: 'org_id::text', ...more };
}

const pushConfigColumn = (column: string): SealedColumn =>
  columnOf('push_configs', column, { place: `push_configs.${column}`, row: `task_id || '/' || id` });

/** Every column with sealed values. A test compares the list with the columns that the vault sealed values for. */
export const sealedColumns: readonly SealedColumn[] = [
  columnOf('signing_keys', 'sealed', { row: 'kid', org: `'rialto'` }),
  columnOf('org_secrets', 'sealed'),
  columnOf('agent_cards', 'credential'),
  columnOf('agent_cards', 'card_query', { place: 'agent_cards.card_query' }),
  columnOf('published_agents', 'executor_secret'),
  columnOf('published_agents', 'executor_query', { place: 'published_agents.executor_query' }),
  pushConfigColumn('token'),
  pushConfigColumn('authentication'),
  columnOf('thread_answers', 'token'),
  columnOf('webhook_secrets', 'sealed'),
  columnOf('mcp_servers', 'secrets'),
  columnOf('approvals', 'sealed'),
  columnOf('audit_subject_keys', 'sealed'),
  columnOf('mcp_user_credentials', 'sealed', { row: `server || ' ' || origin || ' ' || caller` }),
];

interface SealedRow {
  readonly row: string;
  readonly org: string;
  readonly value: string;
}

/** The tables with sealed values that this process can open, and the error of those that it cannot open. */
export interface KeyCheck {
  readonly opened: readonly string[];
  readonly refused?: Error;
}

/**
 * Opens the newest value of each column. It does not throw for a value that cannot be opened, because some may be
 * older than the key.
 */
export async function checkKey(client: Pick<ClientBase, 'query'>, vault: Vault): Promise<KeyCheck> {
  const opened: string[] = [];
  let refused: Error | undefined;
  for (const sealed of sealedColumns) {
    // The column may not exist yet; another check reports an outdated schema.
    if (!(await exists(client, sealed))) continue;
    const { table, column, row, org } = sealed;
    const { rows } = await client.query<SealedRow>(
      `
      select ${row} as row, ${org} as org, ${column} as value
      from ${table}
      where ${column} is not null
      order by 1 desc
      limit 1`,
    );
    for (const one of rows) {
      try {
        vault.open(one.value, placeOf(sealed, one));
        opened.push(table);
      } catch (error) {
        refused ??= error as Error;
      }
    }
  }
  return { opened, refused };
}

/**
 * The result of a rotation: the number of values sealed again, and by table the number of values that no key opens.
 */
export interface Resealed {
  readonly resealed: number;
  readonly unopened: Readonly<Record<string, number>>;
}

const batch = 100;

/**
 * Seals all values of another key with the current key. Each value is replaced only if it has not changed since it
 * was read, so gateways can keep running, and an interrupted rotation can be started again. Values that no key opens
 * stay unchanged.
 */
export async function resealAll(client: Pick<ClientBase, 'query'>, vault: Vault): Promise<Resealed> {
  let resealed = 0;
  const unopened: Record<string, number> = {};
  for (const sealed of sealedColumns) {
    for (let after = ''; ;) {
      const rows = await rowsOf(client, sealed, { limit: batch, after, except: vault.mark });
      for (const one of rows) {
        if (await reseal(client, vault, sealed, one)) resealed++;
        else unopened[sealed.table] = (unopened[sealed.table] ?? 0) + 1;
      }
      if (rows.length < batch) break;
      after = rows.at(-1)!.row;
    }
  }
  return { resealed, unopened };
}

/** False when no key opens the value. A value that changed meanwhile was already sealed with the current key. */
async function reseal(
  client: Pick<ClientBase, 'query'>,
  vault: Vault,
  sealed: SealedColumn,
  { row, org, value }: SealedRow,
): Promise<boolean> {
  const place = placeOf(sealed, { row, org });
  let plain: string;
  try {
    plain = vault.open(value, place).reveal();
  } catch (error) {
    if (error instanceof RialtoError) return false;
    throw error;
  }
  const { table, column } = sealed;
  const update = `update ${table} set ${column} = :resealed where ${column} = :value and ${sealed.row} = :row`;
  await client.query(positional(update, { resealed: vault.seal(plain, place), value, row }));
  return true;
}

async function rowsOf(
  client: Pick<ClientBase, 'query'>,
  { table, column, row, org }: SealedColumn,
  { limit, after, except }: { limit: number; after: string; except: string },
): Promise<SealedRow[]> {
  const { rows } = await client.query<SealedRow>(
    positional(
      `
      select ${row} as row, ${org} as org, ${column} as value
      from ${table}
      where ${column} is not null and ${row} > :after and not starts_with(${column}, :except)
      order by 1
      limit ${limit}`,
      { after, except },
    ),
  );
  return rows;
}

async function exists(client: Pick<ClientBase, 'query'>, { table, column }: SealedColumn): Promise<boolean> {
  const { rows } = await client.query(
    positional(
      `
      select
      from information_schema.columns
      where table_schema = 'public' and table_name = :table and column_name = :column`,
      { table, column },
    ),
  );
  return rows.length > 0;
}

function placeOf({ place }: SealedColumn, { row, org }: Pick<SealedRow, 'row' | 'org'>): SealedAt {
  return { table: place, row, org };
}
