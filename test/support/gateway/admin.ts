import { Client } from 'pg';

/** Runs statements as administrator on the database server of this run. */
export async function asAdmin<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
  const connectionString = process.env.RIALTO_TEST_ADMIN_URL;
  if (!connectionString)
    throw new Error('RIALTO_TEST_ADMIN_URL is not set: run this spec in the Jest project medium or e2e');
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Returns the prefix of the names of all databases of this run. */
export function runPrefix(): string {
  return `rialto_test_${process.env.RIALTO_TEST_RUN ?? 'solo'}_`;
}

/** Drops the databases of this run from a server that continues after the run. */
export async function dropRunDatabases(): Promise<void> {
  await asAdmin(async (client) => {
    const found = 'SELECT datname FROM pg_database WHERE starts_with(datname, $1)';
    const { rows } = await client.query<{ datname: string }>(found, [runPrefix()]);
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`);
  });
}
