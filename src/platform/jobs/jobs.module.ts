import { BullModule, getQueueToken } from '@nestjs/bullmq';
import {
  Global,
  Inject,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { jobs, type JobName } from '../../kernel/jobs.js';
import { SETTINGS, type Settings } from '../config/settings.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import { HandlesJob, Sweeps, type JobHandler, type Sweeper } from './handles-job.decorator.js';
import { JobBell } from './job-bell.js';
import type { QueueBackend } from './queue-backend.js';
import { checkWiring } from './wiring.check.js';
import { QueueHold } from './queue-hold.js';
import { QueueTrouble } from './queue-trouble.js';
import { Sweeping } from './sweeps.js';
import { WorkerHost } from './worker-host.js';

const QUEUE_BACKEND = Symbol('QueueBackend');
const names = Object.keys(jobs) as JobName[];
const tokens = names.map((name) => getQueueToken(jobs[name].queue));

function byName(queues: readonly Queue[]): Map<JobName, Queue> {
  return new Map(names.map((name, index) => [name, queues[index]!]));
}

/** Queues of the catalogue, the bell, and in the roles `all` and `worker` the workers and sweepers. */
@Global()
@Module({})
export class JobsModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly host?: WorkerHost;

  constructor(
    @Inject(SETTINGS) settings: Settings,
    @Inject(QUEUE_BACKEND) backend: QueueBackend,
    @Inject(LOGGER) log: Logger,
    private readonly discovery: DiscoveryService,
    private readonly sweeping: Sweeping,
    private readonly trouble: QueueTrouble,
  ) {
    if (settings.RIALTO_ROLE !== 'api') this.host = new WorkerHost(backend.workerOptions, log, trouble);
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
        { provide: QUEUE_BACKEND, useValue: backend },
        Sweeping,
        { provide: QueueTrouble, useFactory: (log: Logger) => new QueueTrouble(log), inject: [LOGGER] },
        {
          provide: JobBell,
          useFactory: (log: Logger, trouble: QueueTrouble, ...queues: Queue[]) => {
            for (const queue of queues) queue.on('error', (err) => trouble.report(queue.name, err));
            return new JobBell(byName(queues), log);
          },
          inject: [LOGGER, QueueTrouble, ...tokens],
        },
        { provide: QueueHold, useFactory: (...queues: Queue[]) => new QueueHold(byName(queues)), inject: tokens },
      ],
      exports: [JobBell, QueueHold, BullModule],
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

  /** Before the shutdown hooks, in one of which the database connections end under whoever still works. */
  async beforeApplicationShutdown(): Promise<void> {
    this.trouble.expect();
    await this.sweeping.close();
    await this.host?.close();
  }
}
