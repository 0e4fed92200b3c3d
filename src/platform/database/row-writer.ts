import { hash } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { GroupCommit } from './group-commit.js';
import type { Tx } from './tx.js';

/**
 * How rows of one kind are written. `sql` makes a data-modifying statement; its argument is the placeholder of a
 * jsonb array.
 */
export interface RowStatement {
  readonly name: string;
  /** Builds the statement, e.g. (rows) => `insert into t select * from jsonb_to_recordset(${rows}) as r(id uuid)`. */
  readonly sql: (rows: string) => string;
}

/** One row for one statement. All rows given to one `write` call are committed together. */
export interface RowChange {
  readonly statement: RowStatement;
  readonly row: object;
}

type Queryable = Pick<Pool | PoolClient, 'query'>;

/** Writes rows of many callers in group commits. The rows of one caller are committed together. */
export class RowWriter {
  private readonly group: GroupCommit<readonly RowChange[], undefined>;

  constructor(pool: Queryable, lanes = 2, maxBatch = 64) {
    const flush = async (batch: (readonly RowChange[])[]) => {
      await writeRows(pool, batch.flat());
      return batch.map(() => undefined);
    };
    this.group = new GroupCommit(flush, { lanes, maxBatch });
  }

  /** Resolves when the rows are committed; rejects when they are not. */
  write(changes: readonly RowChange[]): Promise<void> {
    return changes.length === 0 ? Promise.resolve() : this.group.commit(changes);
  }
}

/** Writes changes as one statement: one common table expression for each kind of row, in order of their names. */
export async function writeRows(client: Queryable, changes: readonly RowChange[]): Promise<void> {
  const { names, expressions, values } = rowExpressions(changes, 1);
  await client.query({
    name: preparedName(`rows:${names.join('+')}`),
    text: `with ${expressions.join(', ')} select`,
    values,
  });
}

/** Like `writeRows`, inside the transaction of a cold path. */
export async function writeRowsIn({ manager }: Tx, changes: readonly RowChange[]): Promise<void> {
  if (changes.length === 0) return;
  const client = { query: ({ text, values }: { text: string; values: unknown[] }) => manager.query(text, values) };
  await writeRows(client as never, changes);
}

/**
 * Makes common table expressions from changes, named `<label>0`, `<label>1`, … in order of their statement names.
 * Their parameters start at `$<first>`. `select` filters the rows of each.
 */
export function rowExpressions(
  changes: readonly RowChange[],
  first: number,
  { label = 's', select = (rows) => rows }: { label?: string; select?: (rows: string) => string } = {},
): { names: string[]; expressions: string[]; values: string[] } {
  const kinds = new Map<RowStatement, object[]>();
  for (const { statement, row } of changes) {
    const rows = kinds.get(statement);
    if (rows) rows.push(row);
    else kinds.set(statement, [row]);
  }
  const sorted = [...kinds].sort(([a], [b]) => (a.name < b.name ? -1 : 1));
  return {
    names: sorted.map(([{ name }]) => name),
    expressions: sorted.map(
      ([statement], index) => `${label}${index} as (${statement.sql(select(`$${first + index}::jsonb`))})`,
    ),
    values: sorted.map(([, rows]) => JSON.stringify(rows)),
  };
}

/**
 * PostgreSQL cuts the names of prepared statements at 63 bytes, so two long names could become equal; long names are
 * hashed.
 */
export function preparedName(name: string): string {
  if (name.length <= 63) return name;
  let short = hashedNames.get(name);
  if (short === undefined) hashedNames.set(name, (short = `rows:${hash('sha256', name, 'hex').slice(0, 40)}`));
  return short;
}

/** Hashed names by the whole ones, which depend only on the kinds of rows. */
const hashedNames = new Map<string, string>();
