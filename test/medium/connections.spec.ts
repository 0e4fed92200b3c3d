import { loadSettings } from '../../src/platform/config/settings.js';
import { checkDatabase } from '../../src/platform/database/migrate.js';
import { asAdmin } from '../support/gateway/admin.js';
import { startTestGateway, type TestGateway } from '../support/gateway/gateway.js';
import { startRedis } from '../support/gateway/services.js';
import { startStubAgent } from '../support/stubs/stub-agent.js';

const mostPerProcess = 25;

/** Returns the highest number of connections to the gateway's database during the work, without those of the test. */
async function peakDuring(gateway: TestGateway, work: () => Promise<unknown>): Promise<number> {
  const name = new URL(gateway.database.url).pathname.slice(1);
  let peak = 0;
  let running = true;
  const done = work().finally(() => (running = false));
  await asAdmin(async (client) => {
    while (running) {
      const { rows } = await client.query<{ count: number }>(
        `select count(*)::int as count from pg_stat_activity where datname = $1 and application_name like 'rialto%'`,
        [name],
      );
      peak = Math.max(peak, rows[0]!.count);
    }
  });
  await done;
  return peak;
}

async function load(gateway: TestGateway): Promise<void> {
  const agent = await startStubAgent({ name: 'busy' });
  try {
    await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
    for (let round = 0; round < 5; round++) {
      await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          index % 3 === 0
            ? gateway.call('GET', '/api/audit/events')
            : index % 3 === 1
              ? gateway.rpc('tools/call', { name: 'busy.work', arguments: {} })
              : gateway.call('POST', '/api/keys', { name: `k${round}-${index}` }),
        ),
      );
    }
  } finally {
    await agent.close();
  }
}

describe('database connections of one process', () => {
  it(`are at most ${mostPerProcess} under load, with the queues in PostgreSQL`, async () => {
    const gateway = await startTestGateway({ REDIS_URL: '' });
    try {
      const peak = await peakDuring(gateway, () => load(gateway));
      expect(peak).toBeGreaterThan(10);
      expect(peak).toBeLessThanOrEqual(mostPerProcess);
    } finally {
      await gateway.close();
    }
  });

  it(`are at most ${mostPerProcess} under load, with the queues in Redis`, async () => {
    const redis = await startRedis();
    if (!redis) return; // no redis-server on this machine
    const gateway = await startTestGateway({ REDIS_URL: redis.url });
    try {
      const peak = await peakDuring(gateway, () => load(gateway));
      expect(peak).toBeGreaterThan(5);
      expect(peak).toBeLessThanOrEqual(mostPerProcess);
    } finally {
      await gateway.close();
      await redis.stop();
    }
  });

  it('are all closed after a stop', async () => {
    const gateway = await startTestGateway();
    const name = new URL(gateway.database.url).pathname.slice(1);
    await gateway.gateway.close();
    await asAdmin(async (client) => {
      const mine = `
        select application_name from pg_stat_activity where datname = $1 and application_name like 'rialto%'`;
      for (const until = Date.now() + 5_000; Date.now() < until;)
        if ((await client.query(mine, [name])).rowCount === 0) break;
      expect((await client.query(mine, [name])).rows).toEqual([]);
    });
    await gateway.close();
  });
});

describe('the start', () => {
  it('names DATABASE_URL when the server does not answer, the database does not exist, or fsync is off', async () => {
    const admin = new URL(process.env.RIALTO_TEST_ADMIN_URL!);
    const missing = new URL(admin);
    missing.pathname = '/no_such_database';
    await expect(checkDatabase(missing.href)).rejects.toThrow(/^DATABASE_URL: the database does not exist/);
    const silent = new URL(admin);
    silent.port = '1';
    await expect(checkDatabase(silent.href)).rejects.toThrow(/^DATABASE_URL: the server cannot be reached/);
    const fsync = await asAdmin(async (client) => (await client.query<{ fsync: string }>('show fsync')).rows[0]!.fsync);
    const durable = checkDatabase(admin.href);
    if (fsync === 'on') await expect(durable).resolves.toBeUndefined();
    else await expect(durable).rejects.toThrow(/^DATABASE_URL: .*fsync off/);
    await expect(checkDatabase(admin.href, true)).resolves.toBeUndefined();
  });

  it('reports all problems of the settings at once, one line each, without their values', () => {
    const env = {
      NODE_ENV: 'production',
      PORT: 'ninety',
      A2A_SECRET: 'short-canary',
      REDIS_URL: 'http://user:canary@host',
      RIALTO_TOOL_TIMEOUT: '5',
      RIALTO_DEV_ANONYMOUS: 'true',
    };
    let problems: string[] = [];
    try {
      loadSettings(env);
    } catch (error) {
      ({ problems } = error as { problems: string[] });
    }
    const names = [
      'PORT',
      'A2A_SECRET',
      'REDIS_URL',
      'RIALTO_TOOL_TIMEOUT is not a setting; did you mean RIALTO_TOOL_TIMEOUT_MS?',
    ];
    for (const name of [...names, 'RIALTO_ENCRYPTION_KEY', 'RIALTO_DEV_ANONYMOUS', 'DATABASE_URL'])
      expect(problems.filter((line) => line.startsWith(name))).toHaveLength(1);
    expect(problems.join('\n')).not.toContain('canary');
    expect(problems.every((line) => !line.includes('\n'))).toBe(true);
  });
});
