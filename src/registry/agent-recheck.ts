import { Inject, Injectable } from '@nestjs/common';
import { BoundedMap } from '../kernel/bounded-map.js';
import { systemClock } from '../kernel/clock.js';
import type { RialtoError } from '../kernel/errors.js';
import { JobProducer } from '../platform/jobs/job-producer.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { AgentEntity } from './agents/agent.entity.js';
import { AgentStore } from './agents/agent.store.js';

/** At most one log line per agent in this time: callers may call a failing agent many times. */
const quietMs = 60_000;
const maxLogged = 5_000;

/** Makes the registry refresh an unreachable agent soon, so that its health is up to date. */
@Injectable()
export class AgentRecheck {
  private readonly loggedAt = new BoundedMap<string, number>(maxLogged);

  constructor(
    private readonly agents: AgentStore,
    private readonly producer: JobProducer,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  private shouldLog(agentId: string): boolean {
    const now = systemClock.elapsed();
    if (now - (this.loggedAt.get(agentId) ?? -Infinity) < quietMs) return false;
    this.loggedAt.set(agentId, now);
    return true;
  }

  /**
   * Makes the agent due and enqueues its refresh. It runs in the background and is best effort: the caller gets its
   * error at once.
   * @param why is logged, at most once a minute for each agent.
   */
  soon({ id: agentId, slug }: Pick<AgentEntity, 'id' | 'slug'>, why: RialtoError): void {
    if (this.shouldLog(agentId)) this.log.warn({ agent: slug, agentId, ...why.data }, why.message);
    this.agents.makeDue(agentId).then(
      () => this.producer.enqueue(undefined, 'card.refresh', { agentId }, agentId),
      (err: unknown) => this.log.warn({ err, agentId }, 'the refresh of an unreachable agent could not be scheduled'),
    );
  }
}
