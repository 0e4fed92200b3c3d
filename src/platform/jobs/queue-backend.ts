import { createPostgresBackend, createRedisBackend, setDefaultBackendFactory, type QueueOptions } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { RialtoError } from '../../kernel/errors.js';
import type { Settings } from '../config/settings.js';
import { PoolClient } from '../database/pool-client.js';
import type { Logger } from '../telemetry/logger.js';
import { GatheringConnector } from './gathering-connector.js';

/** Queue objects share this pool: each listener keeps one connection of it, so there is room for those and a few queries. */
const queuePoolSize = 8;

/** A server that takes commands and never answers keeps nobody longer. */
const commandMs = 5_000;
/** A connection that brings no answer is a dead one; a worker may wait for a job for 10 s. */
const silenceMs = { queue: 10_000, worker: 30_000 };
const longestPauseMs = 2_000;
/** What no waiting mends; a server that is loading or full is waited for. */
const shutOut = /^(NOAUTH|WRONGPASS|NOPERM|ERR AUTH)/;

/** How queues and workers of this process reach their backend. */
export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  /** Of queues: what cannot be said at once is not said (F15). */
  readonly options: QueueOptions;
  /** Of workers, which wait for as long as it takes. */
  readonly workerOptions: QueueOptions;
  /** Resolves when the backend answers, rejects when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Chooses the backend for the whole process; must run before any queue is made. A Redis that does not answer yet is waited for while the
 * process works: due work is found in the database (P3). Throws `unavailable` naming REDIS_URL when it answers and refuses.
 * @param directUrl of the database, past a pooler: the queue needs sessions of its own.
 */
export async function prepareQueues(
  settings: Pick<Settings, 'REDIS_URL' | 'RIALTO_QUEUE_PREFIX'>,
  directUrl: string,
  log: Logger,
): Promise<QueueBackend> {
  return settings.REDIS_URL
    ? redisBackend(settings.REDIS_URL, settings.RIALTO_QUEUE_PREFIX, log)
    : postgresBackend(directUrl);
}

async function redisBackend(url: string, prefix: string, log: Logger): Promise<QueueBackend> {
  const probe = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 3_000,
    commandTimeout: 3_000,
    maxRetriesPerRequest: 1,
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  // What the command throws says less: that the connection is closed.
  let said: Error | undefined;
  probe.on('error', (error: Error) => (said = error));
  try {
    await probe.connect();
    await probe.ping();
  } catch (cause) {
    const reason = (said ?? (cause as Error)).message.slice(0, 100);
    if (shutOut.test(reason))
      throw new RialtoError('unavailable', { message: `REDIS_URL: the server refuses (${reason})`, cause });
    log.warn({ reason }, 'REDIS_URL: the server does not answer; work goes on from the database until it does');
  } finally {
    probe.disconnect();
  }
  setDefaultBackendFactory(createRedisBackend);
  const health = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 1_000,
    commandTimeout: 1_000,
    maxRetriesPerRequest: 1,
    enableReadyCheck: false,
  });
  health.on('error', () => undefined);
  let isClosed = false;
  // A queue that is closed while Redis is unreachable would reconnect for ever.
  const retryStrategy = (times: number): number | null => (isClosed ? null : Math.min(times * 100, longestPauseMs));
  const way = { url, retryStrategy, Connector: GatheringConnector };
  return {
    kind: 'redis',
    options: {
      connection: {
        ...way,
        socketTimeout: silenceMs.queue,
        enableOfflineQueue: false,
        commandTimeout: commandMs,
      },
      prefix,
    },
    workerOptions: {
      connection: { ...way, socketTimeout: silenceMs.worker, maxRetriesPerRequest: null },
      prefix,
    },
    ping: async () => void (await health.ping()),
    close: () => {
      isClosed = true;
      return Promise.resolve(health.disconnect());
    },
  };
}

function postgresBackend(databaseUrl: string): Promise<QueueBackend> {
  const pool = new pg.Pool({
    Client: PoolClient,
    connectionString: databaseUrl,
    max: queuePoolSize,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    query_timeout: 20_000, // a line that went silent is given up
    options: '-c search_path=bullmq',
    application_name: 'rialto:queue',
  });
  pool.on('error', () => undefined);
  setDefaultBackendFactory(createPostgresBackend as never);
  return Promise.resolve({
    kind: 'postgres',
    options: { connection: pool as never },
    workerOptions: { connection: pool as never },
    ping: async () => void (await pool.query('select 1')),
    close: () => pool.end(),
  });
}
