import { BullModule, getQueueToken } from '@nestjs/bullmq';
import {
  Global,
  Inject,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { jobs, type JobName } from '../../kernel/jobs.js';
import { SETTINGS, type Settings } from '../config/settings.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { HandlesJob, Sweeps, type JobHandler, type Sweeper } from './handles-job.decorator.js';
import { JobProducer } from './job-producer.js';
import type { QueueBackend } from './queue-backend.js';
import { checkWiring } from './wiring.check.js';
import { QueueState } from './queue-state.js';
import { QueueTrouble } from './queue-trouble.js';
import { Sweeping } from './sweeps.js';
import { WorkerHost } from './worker-host.js';

const names = Object.keys(jobs) as JobName[];
const tokens = names.map((name) => getQueueToken(jobs[name].queue));

function byName(queues: readonly Queue[]): Map<JobName, Queue> {
  return new Map(names.map((name, index) => [name, queues[index]!]));
}

/** Queues of the catalogue, the job producer, and in the roles `all` and `worker` the workers and sweepers. */
@Global()
@Module({})
export class JobsModule implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly host?: WorkerHost;
  private closed?: Promise<unknown>;

  constructor(
    @Inject(SETTINGS) settings: Settings,
    host: WorkerHost,
    private readonly discovery: DiscoveryService,
    private readonly sweeping: Sweeping,
    private readonly trouble: QueueTrouble,
  ) {
    if (settings.RIALTO_ROLE !== 'api') this.host = host;
  }

  static register(backend: QueueBackend): DynamicModule {
    return {
      module: JobsModule,
      imports: [
        DiscoveryModule,
        BullModule.forRoot(backend.options),
        ...names.map((name) => BullModule.registerQueue({ name: jobs[name].queue })),
      ],
      providers: [
        Sweeping,
        { provide: QueueTrouble, useFactory: (log: Logger) => new QueueTrouble(log), inject: [LOGGER] },
        {
          provide: JobProducer,
          useFactory: (log: Logger, trouble: QueueTrouble, ...queues: Queue[]) => {
            for (const queue of queues) queue.on('error', (err) => trouble.report(queue.name, err));
            return new JobProducer(byName(queues), log);
          },
          inject: [LOGGER, QueueTrouble, ...tokens],
        },
        {
          provide: WorkerHost,
          useFactory: (state: QueueState, log: Logger, trouble: QueueTrouble) =>
            new WorkerHost(backend.workerOptions, state, log, trouble),
          inject: [QueueState, LOGGER, QueueTrouble],
        },
        { provide: QueueState, useFactory: (...queues: Queue[]) => new QueueState(byName(queues)), inject: tokens },
      ],
      exports: [JobProducer, QueueState, BullModule],
    };
  }

  onApplicationBootstrap(): void {
    const found = this.discovery.getProviders({ metadataKey: HandlesJob.KEY }).map((wrapper) => ({
      job: this.discovery.getMetadataByDecorator(HandlesJob, wrapper)!,
      handler: wrapper.instance as JobHandler<JobName>,
    }));
    const handlers = checkWiring(names, found);
    if (!this.host) return;
    this.host.start(handlers);
    const sweepers = this.discovery
      .getProviders({ metadataKey: Sweeps.KEY })
      .map(
        (wrapper) => [this.discovery.getMetadataByDecorator(Sweeps, wrapper)!, wrapper.instance as Sweeper] as const,
      );
    this.sweeping.start(new Map(sweepers));
  }

  /** Runs before the other shutdown hooks: no more jobs are taken (F12). */
  onModuleDestroy(): void {
    this.trouble.expect();
    this.closed ??= Promise.all([this.sweeping.close(), this.host?.close()]);
  }

  /**
   * Runs before the shutdown hooks, because one of them closes the database connections that running jobs still need.
   */
  async beforeApplicationShutdown(): Promise<void> {
    await this.closed;
  }
}
