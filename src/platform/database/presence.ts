import { randomInt } from 'node:crypto';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import pg from 'pg';
import { systemClock, type Clock } from '../../kernel/clock.js';
import type { Logger } from '../telemetry/logger.js';
import { breakLine, requireWritable, watchLine } from './line-watch.js';

const lockClass = 7_262_920;
const reconnectMs = 500;
/** After a line broke; others may believe that this process is gone while it has none. */
const promptMs = 20;
/** Two, so that one that breaks alone is not missed. */
const lines = 2;
/** After our own lines broke, until others have theirs again: it may have been the server that ended them all. */
const settleMs = 1_000;
/** Until others have renewed their leases, which they do every three seconds, after a time in which nobody could. */
const renewedMs = 5_000;

/** What this process may conclude about others: see `trust`. */
const trusts = { nothing: 0, presence: 1, leases: 2 } as const;

/**
 * Says to every other process that this one is alive: a session-level advisory lock on its own number, shared by two connections of
 * its own. PostgreSQL frees it within milliseconds when the process is killed, so its work is taken over at once; a frozen
 * process keeps it, and its leases run out instead (reliability 4.3).
 */
export class Presence implements OnModuleInit, OnApplicationShutdown {
  /** The number that leases of this process carry. */
  readonly id = randomInt(1, 2_147_483_647);
  private readonly held = new Set<pg.Client>();
  private brokeAt = -Infinity;
  private closed = false;

  constructor(
    private readonly directUrl: string,
    private readonly log: Logger,
    private readonly clock: Pick<Clock, 'elapsed'> = systemClock,
  ) {}

  /**
   * Which signs of loss this process may act on. After an outage of the database everybody seems to be lost: no lock is held and no lease
   * is renewed, though all go on with their work (R1). Whoever lost its own lines has seen it, and waits until others had time to come back.
   */
  get trust(): number {
    const sinceMs = this.clock.elapsed() - this.brokeAt;
    if (sinceMs < settleMs) return trusts.nothing;
    return sinceMs < settleMs + renewedMs ? trusts.presence : trusts.leases;
  }

  /** Resolves when the lock is held. Rejects when the first connections fail; later ones are made again. */
  async open(): Promise<void> {
    await Promise.all(Array.from({ length: lines }, () => this.line()));
  }

  private async line(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.directUrl,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      application_name: 'rialto:presence',
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      watchLine(client);
      await requireWritable(client);
      await client.query('select pg_advisory_lock_shared($1, $2)', [lockClass, this.id]);
    } catch (error) {
      breakLine(client);
      throw error;
    }
    // Until now there was none: others may have been without theirs as long.
    if (this.held.size === 0 && this.brokeAt > -Infinity) this.brokeAt = this.clock.elapsed();
    this.held.add(client);
    client.once('end', () => {
      this.held.delete(client);
      this.brokeAt = this.clock.elapsed();
      this.reopen(promptMs);
    });
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
    await Promise.all([...this.held].map((client) => client.end().catch(() => undefined)));
  }

  private reopen(inMs = reconnectMs): void {
    if (this.closed) return;
    setTimeout(() => {
      if (this.closed) return;
      this.line().catch((err: unknown) => {
        this.brokeAt = this.clock.elapsed();
        if (this.held.size === 0)
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

/**
 * SQL: true when nobody holds the row `alias`, or its holder is lost, as far as `trust` (a parameter with that of the presence) lets this
 * process conclude so. A process itself knows that it lost a lease which ran out.
 */
export function isFree(alias: string, { self, trust }: { self: string; trust: string }): string {
  const [until, owner] = [`${alias}.lease_until`, `${alias}.lease_owner`];
  return `(${until} is null
    or (${until} < now() and (${trust}::int >= ${trusts.leases} or ${owner} = ${self}))
    or (${trust}::int >= ${trusts.presence} and ${owner} <> ${self} and ${isGone(owner)}))`;
}
