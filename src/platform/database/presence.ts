import { randomInt } from 'node:crypto';
import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import pg from 'pg';
import { systemClock } from '../../kernel/clock.js';
import type { Logger } from '../telemetry/logger.js';
import { breakConnection } from '../library-internals/pg-connection.js';
import { requireWritable, watchConnection } from './connection-check.js';
import { positional } from './sql.js';

const lockClass = 7_262_920;
const reconnectMs = 500;
/**
 * Delay after a connection broke. It is short, because other processes may think that this one is gone while it holds
 * no lock.
 */
const promptMs = 20;
/** Two connections, so that the presence stays when only one of them breaks. */
const connectionCount = 2;
/**
 * Wait after our connections broke, until other processes have theirs again: the server may have ended the
 * connections of all.
 */
const settleMs = 1_000;
/** Wait after an outage, until other processes have renewed their leases. They renew them every three seconds. */
const renewedMs = 5_000;

/** Levels of what this process may conclude about others: see `trust`. */
const trusts = { nothing: 0, presence: 1, leases: 2 } as const;

/**
 * Shows other processes that this one is alive, with a session-level advisory lock on its own number. Two dedicated
 * connections share the lock. PostgreSQL frees it within milliseconds when the process is killed, so others take over
 * its work at once. A frozen process keeps the lock, but its leases expire.
 */
export class Presence implements OnModuleInit, OnApplicationShutdown {
  /** The owner number in the leases of this process. */
  readonly id = randomInt(1, 2_147_483_647);
  private readonly held = new Set<pg.Client>();
  private brokeAt = -Infinity;
  private closed = false;

  constructor(
    private readonly directUrl: string,
    private readonly log: Logger,
  ) {}

  /**
   * Which signs of a lost process this process may act on. After an outage of the database every process seems lost: no
   * lock is held and no lease is renewed, though all continue their work. A process that lost its own connections knows
   * about the outage, and waits until the others had time to reconnect.
   */
  get trust(): number {
    const sinceMs = systemClock.elapsed() - this.brokeAt;
    if (sinceMs < settleMs) return trusts.nothing;
    return sinceMs < settleMs + renewedMs ? trusts.presence : trusts.leases;
  }

  /**
   * Resolves when the lock is held. Rejects when the first connections fail; connections that break later are opened
   * again.
   */
  async open(): Promise<void> {
    await Promise.all(Array.from({ length: connectionCount }, () => this.openSession()));
  }

  private async openSession(): Promise<void> {
    const client = new pg.Client({
      connectionString: this.directUrl,
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
      application_name: 'rialto:presence',
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      watchConnection(client);
      await requireWritable(client);
      await client.query(positional('select pg_advisory_lock_shared(:lockClass, :id)', { lockClass, id: this.id }));
    } catch (error) {
      breakConnection(client);
      throw error;
    }
    // This process had no connection until now; other processes may have had none for the same time.
    if (this.held.size === 0 && this.brokeAt > -Infinity) this.brokeAt = systemClock.elapsed();
    this.held.add(client);
    client.once('end', () => {
      this.held.delete(client);
      this.brokeAt = systemClock.elapsed();
      this.reopen(promptMs);
    });
    if (this.closed) await client.end();
  }

  /** Runs before any worker starts: a process that claims work must be known as alive. */
  onModuleInit(): Promise<void> {
    return this.open();
  }

  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /** Releases the lock: others may take over the work of this process. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.held].map((client) => client.end().catch(() => undefined)));
  }

  private reopen(inMs = reconnectMs): void {
    if (this.closed) return;
    setTimeout(() => {
      if (this.closed) return;
      this.openSession().catch((err: unknown) => {
        this.brokeAt = systemClock.elapsed();
        if (this.held.size === 0)
          this.log.warn({ err }, 'the presence lock is lost; other processes may take over its work');
        this.reopen();
      });
    }, inMs).unref();
  }
}

/** SQL: true when the process with the number in the expression `owner` holds no presence lock. */
export function isGone(owner: string): string {
  return `not ${isHeld(`l.objid = ${owner}::bigint::oid`)}`;
}

/** SQL: true when a process other than that with the number in the expression `self` is alive. */
export function hasOthers(self: string): string {
  return isHeld(`l.objid <> ${self}::bigint::oid`);
}

function isHeld(by: string): string {
  return `exists (
    select from pg_locks l
    where l.locktype = 'advisory'
      and l.classid = ${lockClass}
      and ${by}
      and l.objsubid = 2
      and l.database = (select oid from pg_database where datname = current_database())
  )`;
}

/**
 * SQL: true when the row `alias` has no holder, or its holder is lost as far as `trust` (a parameter with the `trust`
 * of the presence) allows that conclusion. A process itself may always take over its own lease that expired.
 */
export function isFree(alias: string, { self, trust }: { self: string; trust: string }): string {
  const [until, owner] = [`${alias}.lease_until`, `${alias}.lease_owner`];
  return `(${until} is null
    or (${until} < now() and (${trust}::int >= ${trusts.leases} or ${owner} = ${self}))
    or (${trust}::int >= ${trusts.presence} and ${owner} <> ${self} and ${isGone(owner)}))`;
}
