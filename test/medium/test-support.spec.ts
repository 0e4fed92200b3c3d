import { Client } from 'pg';
import { Redis } from 'ioredis';
import { createTestDatabase } from '../support/gateway/database.js';
import { startRedis } from '../support/gateway/services.js';

describe('createTestDatabase', () => {
  it('gives each caller its own migrated database, also several callers at once', async () => {
    const databases = await Promise.all(['a', 'a', "odd name '"].map((name) => createTestDatabase(name)));
    try {
      expect(new Set(databases.map(({ url }) => url)).size).toBe(3);
      const tables = await Promise.all(databases.map(({ url }) => tablesOf(url)));
      for (const names of tables) expect(names).toContain('schema_migrations');
    } finally {
      await Promise.all(databases.map((database) => database.drop()));
    }
    await expect(tablesOf(databases[0]!.url)).rejects.toThrow(/does not exist/);
  });
});

describe('startRedis', () => {
  it('runs a private server until it is stopped', async () => {
    const redis = await startRedis();
    if (!redis) return; // no redis-server on this machine
    const client = new Redis(redis.url, { retryStrategy: () => null });
    client.on('error', () => undefined);
    expect(await client.ping()).toBe('PONG');
    const closed = new Promise((done) => client.once('end', done));
    await redis.stop();
    await closed;
  });
});

async function tablesOf(connectionString: string): Promise<string[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>('SELECT table_name AS name FROM information_schema.tables');
    return rows.map(({ name }) => name);
  } finally {
    await client.end();
  }
}
