import { createHash } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';

/** How rows of one kind are written: `sql` turns the placeholder of a jsonb array into a data-modifying statement. */
export interface RowStatement {
  readonly name: string;
  /** For example (rows) => `insert into t select * from jsonb_to_recordset(${rows}) as r(id uuid)`. */
  readonly sql: (rows: string) => string;
}

/** One row for one statement. Everything given to one `write` call is committed together. */
export interface RowChange {
  readonly statement: RowStatement;
  readonly row: object;
}

interface Waiting {
  readonly changes: readonly RowChange[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

type Queryable = Pick<Pool | PoolClient, 'query'>;

/**
 * Group commit: what waits while a statement is under way goes out as one statement, and each caller learns its own
 * outcome. A batch that fails is retried change by change, so one bad row harms none (performance.md, section 15).
 */
export class RowWriter {
  private readonly waiting: Waiting[] = [];
  private running = 0;

  constructor(
    private readonly pool: Queryable,
    private readonly lanes = 2,
    private readonly maxBatch = 64,
  ) {}

  /** Resolves when the rows are committed, rejects when they are not. */
  write(changes: readonly RowChange[]): Promise<void> {
    if (changes.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.waiting.push({ changes, resolve, reject });
      this.pump();
    });
  }

  /** One more lane opens only for a full batch: two half-empty ones would commit twice and wait for each other's rows. */
  private get mayFlush(): boolean {
    const enough = this.running === 0 ? 1 : this.maxBatch;
    return this.running < this.lanes && this.waiting.length >= enough;
  }

  private pump(): void {
    while (this.mayFlush) {
      this.running++;
      void this.flush(this.waiting.splice(0, this.maxBatch)).finally(() => {
        this.running--;
        this.pump();
      });
    }
  }

  private async flush(batch: Waiting[]): Promise<void> {
    try {
      await writeRows(
        this.pool,
        batch.flatMap((entry) => entry.changes),
      );
      for (const entry of batch) entry.resolve();
    } catch (error) {
      if (batch.length === 1) batch[0]!.reject(error);
      else
        await Promise.all(batch.map((entry) => writeRows(this.pool, entry.changes).then(entry.resolve, entry.reject)));
    }
  }
}

/** Writes changes as one statement: rows of one kind together, kinds as common table expressions in order of their names. */
export async function writeRows(client: Queryable, changes: readonly RowChange[]): Promise<void> {
  const kinds = new Map<RowStatement, object[]>();
  for (const { statement, row } of changes) {
    const rows = kinds.get(statement);
    if (rows) rows.push(row);
    else kinds.set(statement, [row]);
  }
  const sorted = [...kinds].sort(([a], [b]) => (a.name < b.name ? -1 : 1));
  await client.query({
    name: preparedName(sorted.map(([{ name }]) => name)),
    text: `with ${sorted.map(([statement], index) => `s${index} as (${statement.sql(`$${index + 1}::jsonb`)})`).join(', ')} select`,
    values: sorted.map(([, rows]) => JSON.stringify(rows)),
  });
}

/** PostgreSQL cuts the names of prepared statements at 63 bytes, so that two long ones could become one. */
function preparedName(names: string[]): string {
  const name = `rows:${names.join('+')}`;
  return name.length <= 63 ? name : `rows:${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;
}
