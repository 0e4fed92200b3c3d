import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { ServerOffers } from './server-offers.js';
import type { UserCredential } from './upstream-places.js';
import { UpstreamPool, type Addressed } from './upstream-pool.js';
import { UpstreamStore } from './upstream.store.js';
import { UpstreamsService } from './upstreams.service.js';
import { UserCredentials } from './user-credentials.service.js';

const unreadAtOnce = 50;

interface Whose {
  readonly server: Addressed;
  readonly user?: UserCredential;
}

interface Turn {
  look: Promise<void>;
  again?: Whose;
}

/** Reads what servers have: when they say that it changed, and of those that were declared while they could not be reached. */
@Injectable()
@Sweeps('mcp.servers')
export class ServerReader implements Sweeper, OnModuleInit {
  readonly everyMs = 5_000;
  /** By whose line it is: what is read just now, and who said meanwhile that it changed again. */
  private readonly reading = new Map<string, Turn>();

  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly store: UpstreamStore,
    private readonly offers: ServerOffers,
    private readonly users: UserCredentials,
    private readonly pool: UpstreamPool,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  onModuleInit(): void {
    this.pool.onChanged((server, user) => this.read({ server, user }));
  }

  /** Asks servers what they have that never said it. */
  async sweep(): Promise<void> {
    try {
      await Promise.all((await this.store.findUnread(unreadAtOnce)).map((server) => this.read({ server })));
    } catch (err) {
      this.log.warn({ err }, 'declared MCP servers are asked later');
    }
  }

  /**
   * One look after the other, so that what was read last is what is kept; one for all that changes until its turn comes. Resolves after the
   * look that is under way.
   */
  private read(whose: Whose): Promise<void> {
    const key = `${whose.server.id} ${whose.user?.caller ?? ''}`;
    const known = this.reading.get(key);
    if (known) {
      known.again = whose;
      return known.look;
    }
    const turn: Turn = { look: this.readNow(whose) };
    this.reading.set(key, turn);
    void this.follow(key, turn);
    return turn.look;
  }

  private async follow(key: string, turn: Turn): Promise<void> {
    await turn.look;
    // A line that is gone meanwhile is not opened for that: another looks by itself.
    for (let next = turn.again; next && this.pool.lineTo(next.server, next.user); next = turn.again) {
      turn.again = undefined;
      turn.look = this.readNow(next);
      await turn.look;
    }
    this.reading.delete(key);
  }

  private async readNow({ server, user }: Whose): Promise<void> {
    try {
      const offer = await this.pool.to(server, user).main.offer();
      if (user) {
        if (await this.offers.keepFor(user, offer)) this.users.tellOffer(server, user);
      } else if (await this.offers.keep(server, offer)) this.upstreams.tellChanged(undefined, server);
    } catch (err) {
      // A line that rests after a failure has told of it; of a server that was taken away meanwhile there is nothing to tell.
      const { code, message } = RialtoError.from(err);
      const level = ['unavailable', 'not_found'].includes(code) ? 'debug' : 'warn';
      // What a server says to a user may hold what only the user knows.
      const why = code === 'internal' ? { err } : { code, reason: message };
      const facts = { ...(user ? { code } : why), server: server.serverId };
      this.log[level](facts, 'what an MCP server has could not be read');
    }
  }
}
