import { Client } from 'pg';

/** Runs statements on the server of this run as its administrator. */
export async function asAdmin<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
  const connectionString = process.env.RIALTO_TEST_ADMIN_URL;
  if (!connectionString) throw new Error('no test server: run this under the projects medium or e2e');
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Every database of this run begins with it. */
export function runPrefix(): string {
  return `rialto_test_${process.env.RIALTO_TEST_RUN ?? 'solo'}_`;
}

/** Drops what the tests of this run left on a server that outlives them. */
export async function dropRunDatabases(): Promise<void> {
  await asAdmin(async (client) => {
    const found = 'SELECT datname FROM pg_database WHERE starts_with(datname, $1)';
    const { rows } = await client.query<{ datname: string }>(found, [runPrefix()]);
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS "${datname}" WITH (FORCE)`);
  });
}
