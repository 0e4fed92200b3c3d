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
import { jobs, type JobName } from '../../kernel/jobs.js';
import { SETTINGS, type Settings } from '../config/settings.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { DueSweeps } from './due-work.js';
import { HandlesJob, Sweeps, type JobHandler, type Sweeper } from './handles-job.decorator.js';
import { JobProducer } from './job-producer.js';
import type { QueueBackend } from './queue-backend.js';
import { checkWiring } from './wiring.check.js';
import { QueueState } from './queue-state.js';
import { QueueTrouble } from './queue-trouble.js';
import { jobNames, namedQueues, QUEUES } from './queues.js';
import { Sweeping } from './sweeps.js';
import { WorkerHost } from './worker-host.js';

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
        ...jobNames.map((name) => BullModule.registerQueue({ name: jobs[name].queue })),
      ],
      providers: [
        Sweeping,
        DueSweeps,
        QueueTrouble,
        JobProducer,
        QueueState,
        {
          provide: QUEUES,
          useFactory: namedQueues,
          inject: [QueueTrouble, ...jobNames.map((name) => getQueueToken(jobs[name].queue))],
        },
        {
          provide: WorkerHost,
          useFactory: (state: QueueState, log: Logger, trouble: QueueTrouble) =>
            new WorkerHost(backend.workerOptions, state, log, trouble),
          inject: [QueueState, LOGGER, QueueTrouble],
        },
      ],
      exports: [JobProducer, QueueState, DueSweeps, BullModule],
    };
  }

  onApplicationBootstrap(): void {
    const found = this.discovery.getProviders({ metadataKey: HandlesJob.KEY }).map((wrapper) => ({
      job: this.discovery.getMetadataByDecorator(HandlesJob, wrapper)!,
      handler: wrapper.instance as JobHandler<JobName>,
    }));
    const handlers = checkWiring(jobNames, found);
    if (!this.host) return;
    this.host.startWorkers(handlers);
    const sweepers = this.discovery
      .getProviders({ metadataKey: Sweeps.KEY })
      .map(
        (wrapper) => [this.discovery.getMetadataByDecorator(Sweeps, wrapper)!, wrapper.instance as Sweeper] as const,
      );
    this.sweeping.startSweeps(new Map(sweepers));
  }

  /** Runs before the other shutdown hooks: no more jobs are taken. */
  onModuleDestroy(): void {
    this.trouble.expect();
    this.closed ??= this.close();
  }

  private async close(): Promise<void> {
    this.sweeping.stopTimers();
    await this.host?.close();
    await this.sweeping.close();
  }

  /**
   * Runs before the shutdown hooks, because one of them closes the database connections that running jobs still need.
   */
  async beforeApplicationShutdown(): Promise<void> {
    await this.closed;
  }
}
