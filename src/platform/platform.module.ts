import {
  Global,
  Module,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule } from '@nestjs/event-emitter';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { VerbBus } from '../kernel/verb-bus.js';
import { AdminActs } from './bus/admin-acts.js';
import { Ledger } from './bus/ledger.js';
import { NoticeWiring } from './bus/notice-wiring.js';
import { Notices } from './bus/notices.js';
import { createVerbBus } from './bus/verb-bus.js';
import { SETTINGS, type Settings } from './config/settings.js';
import { Pg } from './database/pg.js';
import { Presence } from './database/presence.js';
import { RowWriter } from './database/row-writer.js';
import { TxRunner } from './database/tx.js';
import { AnswerBudget } from './http/shares/answer-budget.js';
import { ReadShares } from './http/shares/read-shares.js';
import { Cursors } from './http/cursor.js';
import { FrontDoor } from './http/server/front-door.js';
import { PublicUrl } from './http/public-url.js';
import { SocketDoor } from './http/server/socket-door.js';
import { deploymentFetch } from './http/outbound/deployment-fetch.js';
import { SafeFetch } from './http/outbound/safe-fetch.js';
import { SseStreams } from './http/streams/sse-streams.js';
import { JobsModule } from './jobs/jobs.module.js';
import type { QueueBackend } from './jobs/queue-backend.js';
import { SchemaChecks } from './schemas/schema-checks.js';
import { LineageSeal } from './secrets/lineage.js';
import { SigningKeys } from './secrets/signing-keys.js';
import { Vault } from './secrets/vault.js';
import { HealthController } from './telemetry/health.controller.js';
import { HealthService } from './telemetry/health.service.js';
import { LOGGER, type Logger } from './telemetry/logger.js';
import { LoopWatch } from './telemetry/loop-watch.js';
import { HttpWatch } from './telemetry/http-watch.js';
import { Metrics } from './telemetry/metrics.js';
import { authCheck, databaseCheck, encryptionCheck, queueCheck, schemaCheck } from './telemetry/platform-checks.js';
import { Tracing } from './telemetry/tracing.js';

/** Objects that are created before the application starts and closed after it has stopped. */
export interface Infrastructure {
  readonly settings: Settings;
  readonly dataSource: DataSource;
  /** Used for session-level connections (LISTEN, locks), which must bypass any pooler. */
  readonly directUrl: string;
  readonly queues: QueueBackend;
  readonly log: Logger;
}

const exported = [
  SETTINGS,
  LOGGER,
  Pg,
  Presence,
  TxRunner,
  RowWriter,
  Notices,
  Vault,
  SigningKeys,
  Cursors,
  LineageSeal,
  SafeFetch,
  AnswerBudget,
  ReadShares,
  SchemaChecks,
  PublicUrl,
  FrontDoor,
  SocketDoor,
  HttpWatch,
  SseStreams,
  VerbBus,
  Ledger,
  AdminActs,
  Metrics,
  HealthService,
  Tracing,
];

/** Layer 3: infrastructure that does not depend on the product. This is the only global module. */
@Global()
@Module({})
export class PlatformModule implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  constructor(
    private readonly verbs: VerbBus,
    private readonly safeFetch: SafeFetch,
    private readonly health: HealthService,
    private readonly tracing: Tracing,
  ) {}

  static register(infra: Infrastructure): DynamicModule {
    const { settings, dataSource, queues, log } = infra;
    return {
      module: PlatformModule,
      imports: [
        DiscoveryModule,
        EventEmitterModule.forRoot(),
        TypeOrmModule.forRootAsync({
          useFactory: () => dataSource.options,
          dataSourceFactory: () => Promise.resolve(dataSource),
        }),
        JobsModule.register(queues),
      ],
      controllers: [HealthController],
      providers: [
        { provide: SETTINGS, useValue: settings },
        { provide: LOGGER, useValue: log },
        { provide: Pg, useFactory: () => Pg.of(dataSource) },
        { provide: RowWriter, useFactory: (pg: Pg) => new RowWriter(pg.pool), inject: [Pg] },
        {
          provide: Notices,
          useFactory: (pg: Pg, { id }: Presence) => new Notices(pg.pool, infra.directUrl, log, id),
          inject: [Pg, Presence],
        },
        NoticeWiring,
        { provide: Presence, useFactory: () => new Presence(infra.directUrl, log) },
        TxRunner,
        { provide: Vault, useFactory: () => new Vault(settings.encryptionKey, settings.otherEncryptionKey) },
        SigningKeys,
        {
          provide: LineageSeal,
          useFactory: (vault: Vault) => LineageSeal.ofDeployment(settings, vault),
          inject: [Vault],
        },
        Cursors,
        SchemaChecks,
        AnswerBudget,
        ReadShares,
        { provide: PublicUrl, useFactory: () => new PublicUrl(settings) },
        { provide: SafeFetch, useFactory: deploymentFetch, inject: [SETTINGS, Metrics] },
        FrontDoor,
        SocketDoor,
        SseStreams,
        HttpWatch,
        LoopWatch,
        { provide: VerbBus, useFactory: createVerbBus, inject: [Ledger, EventEmitter2, LOGGER] },
        Ledger,
        AdminActs,
        {
          provide: HealthService,
          useFactory: ({ pool }: Pg, vault: Vault) =>
            new HealthService(
              databaseCheck(pool),
              schemaCheck((dataSource.options as { url: string }).url),
              queueCheck(queues),
              encryptionCheck(pool, vault),
              authCheck(settings),
            ),
          inject: [Pg, Vault],
        },
        { provide: Tracing, useFactory: () => Tracing.load(settings.OTEL_EXPORTER_OTLP_ENDPOINT) },
        Metrics,
      ],
      exports: exported,
    };
  }

  onApplicationBootstrap(): void {
    if (!this.verbs.hasDecider)
      throw new Error('the verb bus has no decider: import the policy module into the application');
  }

  /**
   * Runs before the other shutdown hooks, so that the process reports "not ready" while the others still finish their
   * work.
   */
  onModuleDestroy(): void {
    this.health.drain();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.safeFetch.close();
    await this.tracing.close();
  }
}
