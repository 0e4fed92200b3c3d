import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../dist/src/platform/database/embedded-postgres.js';

/**
 * Starts a PostgreSQL server for the benchmark, with a function that creates databases on it.
 * @param settings of the server
 */
export async function startPostgres(settings) {
  const dataDir = mkdtempSync(join(tmpdir(), 'rialto-bench-pg-'));
  const postgres = await startEmbeddedPostgres({ dataDir, settings, log: () => undefined });
  return {
    database: async (name) => {
      const client = new pg.Client({ connectionString: postgres.url });
      await client.connect();
      await client.query(`create database ${name}`);
      await client.end();
      const url = new URL(postgres.url);
      url.pathname = `/${name}`;
      return url.href;
    },
    stop: async () => {
      await postgres.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Starts the queues of BACKENDS that are available on this machine. Prints a line when there is no redis-server. */
export async function startQueues() {
  const wanted = (process.env.BACKENDS ?? 'redis,postgres').split(',');
  const redis = wanted.includes('redis') ? await startRedis() : undefined;
  if (wanted.includes('redis') && !redis)
    console.log('no redis-server was found: only the PostgreSQL queue is measured');
  return { redis, backends: wanted.filter((name) => name === 'postgres' || redis) };
}

/** Starts a Redis without persistence; undefined when there is no redis-server. */
async function startRedis() {
  const port = await freePort();
  const server = spawn(
    'redis-server',
    ['--port', String(port), '--save', '', '--appendonly', 'no', '--bind', '127.0.0.1'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const isReady = await new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.stdout.on('data', (chunk) => String(chunk).includes('Ready to accept') && resolve(true));
  });
  const url = `redis://127.0.0.1:${port}`;
  return isReady ? { url, commands: () => countCommands(url), stop: () => server.kill('SIGKILL') } : undefined;
}

/** Returns the number of scripts and messages that a Redis server executed for its clients. */
async function countCommands(url) {
  const client = new Redis(url);
  const text = await client.info('commandstats');
  client.disconnect();
  return [...text.matchAll(/cmdstat_(?:evalsha|eval|publish|spublish):calls=(\d+)/g)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  );
}

/** Returns a port of this machine that is free at this moment. */
export function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
