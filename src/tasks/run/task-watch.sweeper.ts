import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { firstIdOf } from '../../kernel/ids.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { Breaches } from '../../platform/telemetry/breaches.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { TaskLeases } from '../storage/task-lease.store.js';
import { TaskWatchStore } from '../storage/task-watch.store.js';

const recentMs = 600_000;
/** The sweeper ends an overdue task at its next pass; a task this much later is a breach. */
const graceMs = 60_000;
const perSweep = 100;

/**
 * Counts broken invariants of tasks while the gateway runs: checks a sample every 30 seconds, and counts each breach
 * once.
 */
@Injectable()
@Sweeps('task.watch')
export class TaskWatchSweeper implements Sweeper, OnModuleInit {
  readonly everyMs = 30_000;
  private readonly breaches: Breaches;

  constructor(
    private readonly store: TaskWatchStore,
    private readonly leases: TaskLeases,
    private readonly metrics: Metrics,
    @Inject(SETTINGS) private readonly settings: Settings,
    @Inject(LOGGER) log: Logger,
  ) {
    this.breaches = new Breaches(metrics, log);
  }

  onModuleInit(): void {
    this.metrics.waits('tasks', () => this.leases.countWaiting());
  }

  async sweep(): Promise<void> {
    const { A2A_QUEUED_LIFETIME_MAX_MS: queued, A2A_PROCESSING_LIFETIME_MAX_MS: working } = this.settings;
    const from = firstIdOf(systemClock.now() - Math.round(Math.random() * recentMs));
    const late = await this.leases.findOverdue({ queued: queued + graceMs, working: working + graceMs }, perSweep);
    for (const { id, inv } of await this.store.breaches(from)) this.breaches.count(inv, id);
    for (const { id } of late) this.breaches.count('I1', id);
  }
}
