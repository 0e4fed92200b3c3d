import { createPostgresBackend, createRedisBackend, setDefaultBackendFactory, type QueueOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { RialtoError } from '../../kernel/errors.js';
import type { Settings } from '../config/settings.js';
import { PoolClient } from '../database/pool-client.js';
import type { Logger } from '../telemetry/logger.js';
import { GatheringConnector } from '../library-internals/gathering-connector.js';
import { PatientPool } from '../library-internals/patient-pool.js';

/**
 * All queue objects share this pool. Each listener keeps one connection of it, so the pool has room for those and a
 * few queries.
 */
const queuePoolSize = 8;

/** Longest wait for a server that accepts commands but does not answer. */
const commandMs = 5_000;
/** A connection without any answer for so long is dead. A worker may wait 10 s for a job. */
const silenceMs = { queue: 10_000, worker: 30_000 };
const longestPauseMs = 2_000;
/** Errors that do not pass by waiting. A server that is loading or full is waited for. */
const accessErrors = /^(NOAUTH|WRONGPASS|NOPERM|ERR AUTH)/;

/** Connects queues and workers of this process to their backend. */
export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  /** Options of queues: a command that cannot be sent at once fails. */
  readonly options: QueueOptions;
  /** Options of workers, which wait without a limit. */
  readonly workerOptions: QueueOptions;
  /** Resolves when the backend answers, rejects when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Chooses the backend for the whole process; it must run before any queue is created. While Redis does not answer, the
 * process starts anyway and finds due work in the database. Throws `unavailable` with the setting's name when Redis
 * answers and refuses access.
 * @param directUrl URL of the database that bypasses a pooler, because the queue needs its own sessions.
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
  // The error of the command only says that the connection is closed; the event has the reason.
  let connectionError: Error | undefined;
  probe.on('error', (error: Error) => (connectionError = error));
  try {
    await probe.connect();
    await probe.ping();
  } catch (cause) {
    const reason = (connectionError ?? (cause as Error)).message.slice(0, 100);
    if (accessErrors.test(reason))
      throw new RialtoError('unavailable', { message: `REDIS_URL: the server refuses access (${reason})`, cause });
    log.warn({ reason }, 'REDIS_URL: the server does not answer; until it does, work is found in the database');
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
  // Otherwise a queue that is closed while Redis is unreachable would reconnect without end.
  const retryStrategy = (times: number): number | null => (isClosed ? null : Math.min(times * 100, longestPauseMs));
  const baseConnection = { url, retryStrategy, Connector: GatheringConnector };
  return {
    kind: 'redis',
    options: {
      connection: {
        ...baseConnection,
        socketTimeout: silenceMs.queue,
        enableOfflineQueue: false,
        commandTimeout: commandMs,
      },
      prefix,
    },
    workerOptions: {
      connection: { ...baseConnection, socketTimeout: silenceMs.worker, maxRetriesPerRequest: null },
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
  const pool = new PatientPool({
    Client: PoolClient,
    connectionString: databaseUrl,
    max: queuePoolSize,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
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
