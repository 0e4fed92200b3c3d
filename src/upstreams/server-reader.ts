import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { afterChange, isForgotten, backoffOf, type RefreshPace } from './catalog/refresh-backoff.js';
import { ServerChanges } from './catalog/server-changes.js';
import type { UserCredential } from './storage/sealed-endpoints.js';
import { UpstreamPool, type Addressed } from './connections/upstream-pool.js';
import { UpstreamStore } from './storage/upstream.store.js';

const unreadAtOnce = 50;

interface ReadTarget {
  readonly server: Addressed;
  readonly user?: UserCredential;
}

/** Resolves with the failure of a read; undefined when it succeeded. */
type ReadResult = Promise<RialtoError | undefined>;

interface Turn {
  readonly read: ReadResult;
  /** Latest request for a read after the current one, and that read. */
  again?: ReadTarget;
  next?: ReadResult;
}

/**
 * Reads the offers of servers: after change notifications, and of declared servers that could not be reached before.
 */
@Injectable()
@Sweeps('mcp.servers')
export class ServerReader implements Sweeper, OnModuleInit {
  readonly everyMs = 5_000;
  /** Running read and the request for a read after it, by the owner of the connection. */
  private readonly reading = new Map<string, Turn>();
  /** Delayed reads of servers that change their tools too often, by the owner of the connection. */
  private readonly waiting = new Map<string, ReadTarget>();
  private readonly paces = new Map<string, RefreshPace>();

  constructor(
    private readonly store: UpstreamStore,
    private readonly changes: ServerChanges,
    private readonly pool: UpstreamPool,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onModuleInit(): void {
    const read = (server: Addressed, user?: UserCredential): ReadResult => this.readOffer({ server, user });
    this.pool.onChanged((server, user) => this.readInTurn({ server, user }), read);
  }

  /** Reads the offers of declared servers that were never read. */
  async sweep(): Promise<void> {
    try {
      await Promise.all((await this.store.findUnread(unreadAtOnce)).map((server) => this.readOffer({ server })));
    } catch (err) {
      this.log.warn({ err }, 'could not load the declared MCP servers; tries again later');
    }
  }

  /**
   * Reads after a change notification. A server that keeps changing its tools is read less and less often; before a
   * call on a new connection it is still read at once.
   */
  private readInTurn(target: ReadTarget): void {
    const key = readKey(target);
    const isWaiting = this.waiting.has(key);
    const restMs = backoffOf(this.paces.get(key), systemClock.elapsed());
    if (!isWaiting && restMs === 0) return void this.readOffer(target);
    this.waiting.set(key, target);
    if (isWaiting) return;
    const readDelayed = (): void => {
      const { server, user } = this.waiting.get(key)!;
      this.waiting.delete(key);
      if (this.pool.lineTo(server, user)) void this.readOffer({ server, user });
    };
    setTimeout(readDelayed, restMs).unref();
  }

  /**
   * Reads an offer; the read starts after this call. Reads of one owner run one after the other, so that the latest
   * result is stored. One read covers all requests until its turn.
   */
  private readOffer(target: ReadTarget): ReadResult {
    const key = readKey(target);
    const known = this.reading.get(key);
    if (!known) return this.beginRead(key, target);
    known.again = target;
    known.next ??= known.read.then(() => this.readNext(key, known.again!));
    return known.next;
  }

  private beginRead(key: string, target: ReadTarget): ReadResult {
    const turn: Turn = { read: this.readNow(target) };
    this.reading.set(key, turn);
    void turn.read.then(() => void (turn.next ?? this.reading.delete(key)));
    return turn.read;
  }

  /**
   * Reads again, but does not reopen a connection that was closed meanwhile: a new connection triggers its own read.
   */
  private readNext(key: string, { server, user }: ReadTarget): ReadResult {
    if (this.pool.lineTo(server, user)) return this.beginRead(key, { server, user });
    this.reading.delete(key);
    return Promise.resolve(
      new RialtoError('unavailable', {
        message: 'the connection to the MCP server was closed before its tools were read',
      }),
    );
  }

  private async readNow({ server, user }: ReadTarget): Promise<RialtoError | undefined> {
    try {
      const offer = await this.pool.to(server, user).shared.offer();
      const { hasOtherTools } = await this.changes.keepOffer(server, user, offer);
      if (!offer.resources || !offer.templates || !offer.prompts)
        this.log.warn(
          { server: server.serverId },
          'an MCP server refused some of its lists; their previous items stay',
        );
      if (hasOtherTools) this.rememberChange(readKey({ server, user }));
      return undefined;
    } catch (err) {
      // A failed connection was logged already, and a server that was removed meanwhile needs no warning.
      const failure = RialtoError.from(err);
      const { code, message } = failure;
      const level = ['unavailable', 'not_found'].includes(code) ? 'debug' : 'warn';
      // The error that a server sends to a user may hold data of that user.
      const why = code === 'internal' ? { err } : { code, reason: message };
      const facts = { ...(user ? { code } : why), server: server.serverId };
      this.log[level](facts, 'could not read the offer of an MCP server');
      return failure;
    }
  }

  private rememberChange(key: string): void {
    const now = systemClock.elapsed();
    for (const [each, pace] of this.paces) if (isForgotten(pace, now)) this.paces.delete(each);
    this.paces.set(key, afterChange(this.paces.get(key), now));
  }
}

function readKey({ server, user }: ReadTarget): string {
  return `${server.id} ${user?.caller ?? ''}`;
}
