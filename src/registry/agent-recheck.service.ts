import { Inject, Injectable } from '@nestjs/common';
import { JobBell } from '../platform/jobs/job-bell.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { AgentStore } from './agent.store.js';

/** Has an agent that could not be reached looked at again soon, so that the registry tells its health. */
@Injectable()
export class AgentRecheck {
  constructor(
    private readonly agents: AgentStore,
    private readonly bell: JobBell,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Best effort and in the background: the failed call is answered meanwhile. */
  soon(agentId: string): void {
    this.agents.makeDue(agentId).then(
      () => this.bell.ring(undefined, 'card.refresh', { agentId }, agentId),
      (err: unknown) => this.log.warn({ err, agentId }, 'an unreachable agent could not be made due for refresh'),
    );
  }
}
