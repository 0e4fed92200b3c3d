import { randomInt } from 'node:crypto';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import pg from 'pg';
import type { Logger } from '../telemetry/logger.js';
import { watchLine } from './line-watch.js';

const lockClass = 7_262_920;
const reconnectMs = 500;
/** After a line broke, for until there is another, others believe that this process is gone. */
const promptMs = 20;

/**
 * Says to every other process that this one is alive: a session-level advisory lock on its own number, over a connection of
 * its own. PostgreSQL frees it within milliseconds when the process is killed, so its work is taken over at once; a frozen
 * process keeps it, and its leases run out instead (reliability 4.3).
 */
export class Presence implements OnModuleInit, OnApplicationShutdown {
  /** The number that leases of this process carry. */
  readonly id = randomInt(1, 2_147_483_647);
  private client?: pg.Client;
  private closed = false;

  constructor(
    private readonly directUrl: string,
    private readonly log: Logger,
  ) {}

  /** Resolves when the lock is held. Rejects when the first connection fails; later ones are made again. */
  async open(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.directUrl,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      application_name: 'rialto:presence',
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      await client.query('select pg_advisory_lock($1, $2)', [lockClass, this.id]);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    this.client = client;
    client.once('end', () => this.reopen(promptMs));
    watchLine(client);
    if (this.closed) await client.end();
  }

  /** Before any worker starts: whoever claims has to be known as alive. */
  onModuleInit(): Promise<void> {
    return this.open();
  }

  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Gives the lock back: what this process still holds may be taken over. */
  async close(): Promise<void> {
    this.closed = true;
    await this.client?.end().catch(() => undefined);
  }

  private reopen(inMs = reconnectMs): void {
    if (this.closed) return;
    setTimeout(() => {
      if (this.closed) return;
      this.open().catch((err: unknown) => {
        this.log.warn({ err }, 'the presence lock is lost; others may take over what this process works on');
        this.reopen();
      });
    }, inMs).unref();
  }
}

/** SQL: true when the process with the number in this expression holds no presence lock. */
export function isGone(owner: string): string {
  return `not exists (select from pg_locks l where l.locktype = 'advisory' and l.classid = ${lockClass} and l.objid = ${owner}::bigint::oid
    and l.objsubid = 2 and l.database = (select oid from pg_database where datname = current_database()))`;
}

/** SQL: true unless the process `self` holds the row `alias` by a lease that runs: it is there, also while its presence lock is not. */
export function notOurs(alias: string, self: string): string {
  return `(${alias}.lease_until is null or ${alias}.lease_until < now() or ${alias}.lease_owner <> ${self})`;
}
