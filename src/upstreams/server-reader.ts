import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { afterChange, isForgotten, backoffOf, type RefreshPace } from './catalog/refresh-backoff.js';
import { ServerOffers } from './catalog/server-offers.js';
import type { UserCredential } from './storage/sealed-endpoints.js';
import { UpstreamPool, type Addressed } from './connections/upstream-pool.js';
import { UpstreamStore } from './storage/upstream.store.js';
import { UpstreamsService } from './upstreams.service.js';
import { UserCredentials } from './credentials/user-credentials.js';

const unreadAtOnce = 50;

interface Whose {
  readonly server: Addressed;
  readonly user?: UserCredential;
}

/** Why a look failed, if it did. */
type Look = Promise<RialtoError | undefined>;

interface Turn {
  readonly look: Look;
  /** Who wants the look after it, the latest; and that look. */
  again?: Whose;
  next?: Look;
}

/** Reads what servers have: when they say that it changed, and of those that were declared while they could not be reached. */
@Injectable()
@Sweeps('mcp.servers')
export class ServerReader implements Sweeper, OnModuleInit {
  readonly everyMs = 5_000;
  /** By whose line it is: what is read just now, and who said meanwhile that it changed again. */
  private readonly reading = new Map<string, Turn>();
  /** Who said that it changed, of those that said so too often. */
  private readonly waiting = new Map<string, Whose>();
  private readonly paces = new Map<string, RefreshPace>();

  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly store: UpstreamStore,
    private readonly offers: ServerOffers,
    private readonly users: UserCredentials,
    private readonly pool: UpstreamPool,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onModuleInit(): void {
    const read = (server: Addressed, user?: UserCredential): Look => this.read({ server, user });
    this.pool.onChanged((server, user) => this.readInTurn({ server, user }), read);
  }

  /** Asks servers what they have that never said it. */
  async sweep(): Promise<void> {
    try {
      await Promise.all((await this.store.findUnread(unreadAtOnce)).map((server) => this.read({ server })));
    } catch (err) {
      this.log.warn({ err }, 'declared MCP servers are asked later');
    }
  }

  /** A server whose tools are others ever anew is looked over ever less often, but before it is called on a line that is new. */
  private readInTurn(whose: Whose): void {
    const key = keyOf(whose);
    const isWaiting = this.waiting.has(key);
    const restMs = backoffOf(this.paces.get(key), systemClock.elapsed());
    if (!isWaiting && restMs === 0) return void this.read(whose);
    this.waiting.set(key, whose);
    if (isWaiting) return;
    const look = (): void => {
      const { server, user } = this.waiting.get(key)!;
      this.waiting.delete(key);
      if (this.pool.lineTo(server, user)) void this.read({ server, user });
    };
    setTimeout(look, restMs).unref();
  }

  /**
   * A look that begins after it was asked for. One after the other, so that what was read last is what is kept; one for all that changes
   * until its turn comes.
   */
  private read(whose: Whose): Look {
    const key = keyOf(whose);
    const known = this.reading.get(key);
    if (!known) return this.begin(key, whose);
    known.again = whose;
    known.next ??= known.look.then(() => this.goOn(key, known.again!));
    return known.next;
  }

  private begin(key: string, whose: Whose): Look {
    const turn: Turn = { look: this.readNow(whose) };
    this.reading.set(key, turn);
    void turn.look.then(() => void (turn.next ?? this.reading.delete(key)));
    return turn.look;
  }

  /** A line that is gone meanwhile is not opened for that: another looks by itself. */
  private goOn(key: string, { server, user }: Whose): Look {
    if (this.pool.lineTo(server, user)) return this.begin(key, { server, user });
    this.reading.delete(key);
    return Promise.resolve(new RialtoError('unavailable', { message: 'the line to the MCP server is gone' }));
  }

  private async readNow({ server, user }: Whose): Promise<RialtoError | undefined> {
    try {
      const offer = await this.pool.to(server, user).shared.offer();
      const kept = user ? await this.offers.keepFor(user, offer) : await this.offers.keep(server, offer);
      if (!offer.resources || !offer.templates || !offer.prompts)
        this.log.warn({ server: server.serverId }, 'an MCP server refused some of its lists; what they had is kept');
      if (kept.hasOtherTools) this.remember(keyOf({ server, user }));
      if (!kept.isNew) return undefined;
      if (user) this.users.tellOffer(server, user);
      else this.upstreams.tellChanged(undefined, server);
      return undefined;
    } catch (err) {
      // A line that rests after a failure has told of it; of a server that was taken away meanwhile there is nothing to tell.
      const failure = RialtoError.from(err);
      const { code, message } = failure;
      const level = ['unavailable', 'not_found'].includes(code) ? 'debug' : 'warn';
      // What a server says to a user may hold what only the user knows.
      const why = code === 'internal' ? { err } : { code, reason: message };
      const facts = { ...(user ? { code } : why), server: server.serverId };
      this.log[level](facts, 'what an MCP server has could not be read');
      return failure;
    }
  }

  private remember(key: string): void {
    const now = systemClock.elapsed();
    for (const [each, pace] of this.paces) if (isForgotten(pace, now)) this.paces.delete(each);
    this.paces.set(key, afterChange(this.paces.get(key), now));
  }
}

function keyOf({ server, user }: Whose): string {
  return `${server.id} ${user?.caller ?? ''}`;
}
