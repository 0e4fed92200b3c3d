import { Injectable } from '@nestjs/common';
import type { AgentId } from '../../kernel/ids.js';
import { DueSweeps, type DueSweep } from '../../platform/jobs/due-work.js';
import { JobProducer } from '../../platform/jobs/job-producer.js';
import { unseenRun } from '../../platform/jobs/job-run.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { AgentStore } from '../agents/agent.store.js';
import { CardRefreshProcessor } from './card-refresh.processor.js';
import { healths } from '../agents/health.js';

/** Enqueues refreshes of agents that are due and counts agents by health. */
@Injectable()
@Sweeps('card.refresh')
export class CardRefreshSweeper implements Sweeper {
  readonly everyMs = 2_000;
  private readonly due: DueSweep<AgentId>;

  constructor(
    private readonly store: AgentStore,
    producer: JobProducer,
    processor: CardRefreshProcessor,
    sweeps: DueSweeps,
    private readonly metrics: Metrics,
  ) {
    this.due = sweeps.behind<AgentId>('card.refresh', {
      kind: 'cards',
      find: (limit) => store.findDue(limit),
      keyOf: (id) => id,
      ring: (agentId) => producer.tryEnqueue('card.refresh', { agentId }, { key: agentId }),
      run: (agentId) => processor.handle({ agentId }, unseenRun),
    });
  }

  async sweep(): Promise<void> {
    await this.due.sweep();
    await this.gauge();
  }

  private async gauge(): Promise<void> {
    const counts = new Map((await this.store.countByHealth()).map(({ health, count }) => [health, count]));
    for (const health of healths) this.metrics.agents.set({ health }, counts.get(health) ?? 0);
  }
}
