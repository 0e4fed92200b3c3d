import { Injectable } from '@nestjs/common';
import { JobBell } from '../platform/jobs/job-bell.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { AgentStore } from './agent.store.js';
import { CardRefreshProcessor } from './card-refresh.processor.js';
import { healths } from './health.js';

const perSweep = 100;

/** Rings for agents whose card is due; does the work itself for one that was rung for and is still due. */
@Injectable()
@Sweeps('card.refresh')
export class CardRefreshSweeper implements Sweeper {
  readonly everyMs = 2_000;
  private rung = new Set<string>();

  constructor(
    private readonly store: AgentStore,
    private readonly bell: JobBell,
    private readonly processor: CardRefreshProcessor,
    private readonly metrics: Metrics,
  ) {}

  async sweep(): Promise<void> {
    const due = await this.store.findDue(perSweep);
    const silent = due.filter((id) => this.rung.has(id));
    this.rung = new Set(due);
    for (const agentId of due)
      if (!silent.includes(agentId)) this.bell.ring(undefined, 'card.refresh', { agentId }, agentId);
    for (const agentId of silent) await this.processor.handle({ agentId });
    await this.gauge();
  }

  private async gauge(): Promise<void> {
    const counts = new Map((await this.store.countByHealth()).map(({ health, count }) => [health, count]));
    for (const health of healths) this.metrics.agents.set({ health }, counts.get(health) ?? 0);
  }
}
