import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import type { RialtoError } from '../kernel/errors.js';
import { JobProducer } from '../platform/jobs/job-producer.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { AgentEntity } from './agents/agent.entity.js';
import { AgentStore } from './agents/agent.store.js';

/** A failing agent is called again and again: its log line is not. */
const quietMs = 60_000;
const maxTold = 5_000;

/** Has an agent that could not be reached looked at again soon, so that the registry tells its health. */
@Injectable()
export class AgentRecheck {
  private readonly toldAt = new Map<string, number>();

  constructor(
    private readonly agents: AgentStore,
    private readonly producer: JobProducer,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  private isNews(agentId: string): boolean {
    const now = systemClock.elapsed();
    if (now - (this.toldAt.get(agentId) ?? -Infinity) < quietMs) return false;
    if (this.toldAt.size >= maxTold) this.toldAt.clear();
    this.toldAt.set(agentId, now);
    return true;
  }

  /** Best effort and in the background: the failed call is answered meanwhile. @param why is logged, once a minute for each agent. */
  soon({ id: agentId, slug }: Pick<AgentEntity, 'id' | 'slug'>, why: RialtoError): void {
    if (this.isNews(agentId)) this.log.warn({ agent: slug, agentId, ...why.data }, why.message);
    this.agents.makeDue(agentId).then(
      () => this.producer.enqueue(undefined, 'card.refresh', { agentId }, agentId),
      (err: unknown) => this.log.warn({ err, agentId }, 'an unreachable agent could not be made due for refresh'),
    );
  }
}
