import { hash } from 'node:crypto';
import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { BoundedMap } from '../../kernel/bounded-map.js';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { Arrivals } from '../../platform/jobs/arrivals.js';
import { JobProducer } from '../../platform/jobs/job-producer.js';
import { QueueState } from '../../platform/jobs/queue-state.js';
import type { ConfigKey } from './delivery.store.js';
import { maxConfigs } from '../configs/push-config.store.js';

const maxKnownTasks = 10_000;
const coalesceMs = 5;
/** A longer delay goes to the queue as a delayed job, where an operator can see and promote it. */
const maxTimerMs = 5_000;

/**
 * Enqueues deliveries as soon as a task has an event. It knows only configurations that were made through this process,
 * so a task without any costs one map look-up. The sweeper finds the others.
 */
@Injectable()
export class DeliveryTrigger implements OnModuleDestroy {
  /** Configurations by task, oldest first. */
  private readonly known = new BoundedMap<string, Set<string>>(maxKnownTasks);
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly arrivals = new Arrivals<ConfigKey>({
    addOne: (key) => this.enqueue(key),
    addMany: (keys) => this.producer.tryEnqueue('webhook.deliver', { configs: [...keys] }, {}),
  });
  private stopping = false;

  constructor(
    private readonly producer: JobProducer,
    private readonly queues: QueueState,
  ) {}

  rememberConfig({ taskId, configId }: ConfigKey): void {
    const configs = this.known.get(taskId) ?? new Set();
    configs.delete(configId);
    this.known.set(taskId, configs.add(configId));
    if (configs.size > maxConfigs) configs.delete(configs.values().next().value!);
  }

  /** Removes a deleted configuration. */
  forgetConfig({ taskId, configId }: ConfigKey): void {
    this.known.get(taskId)?.delete(configId);
  }

  @OnNotice('task.event-appended')
  onEvent({ taskId }: Notice<'task.event-appended'>): void {
    for (const configId of this.known.get(taskId) ?? []) this.enqueueIn(coalesceMs, { taskId, configId });
  }

  /** Enqueues a configuration after a delay; calls within the delay are combined into one job. */
  enqueueIn(ms: number, key: ConfigKey): void {
    const name = jobKeyOf(key);
    if (ms > maxTimerMs) return this.producer.enqueueLater('webhook.deliver', { ...key }, name, ms);
    if (this.stopping || this.timers.has(name)) return;
    const enqueue = (): void => {
      this.timers.delete(name);
      this.enqueueDue(key);
    };
    this.timers.set(name, setTimeout(enqueue, ms).unref());
  }

  /** Enqueues a configuration that has just become due, alone or together with others. */
  enqueueDue(key: ConfigKey): void {
    this.arrivals.add(key);
  }

  /** Enqueues a configuration, unless a job of its own waits already. Returns true when the queue accepted the job. */
  enqueue(key: ConfigKey): Promise<boolean> {
    return this.producer.tryEnqueue('webhook.deliver', { ...key }, { key: jobKeyOf(key) });
  }

  /** True while an operator has paused the deliveries. */
  isPaused(): Promise<boolean> {
    return this.queues.isHeld('webhook.deliver');
  }

  onModuleDestroy(): void {
    this.stopping = true;
    for (const timer of this.timers.values()) clearTimeout(timer);
  }
}

/** The key of a configuration in the queue. Hashed, because callers choose the ids of configurations freely. */
export function jobKeyOf({ taskId, configId }: ConfigKey): string {
  return `${taskId}-${hash('sha256', configId, 'hex').slice(0, 32)}`;
}
