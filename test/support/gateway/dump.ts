import type { TestGateway } from './gateway.js';

/** Returns every row of every table, as text. */
export async function rowsOf({ sql }: Pick<TestGateway, 'sql'>): Promise<string> {
  const tables = await sql<{ name: string }>(
    `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
     where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
  );
  const texts = await Promise.all(
    tables.map(
      async ({ name }) =>
        (await sql<{ text: string }>(`select coalesce(string_agg(t::text, E'\\n'), '') as text from ${name} t`))[0]!
          .text,
    ),
  );
  return texts.join('\n');
}
