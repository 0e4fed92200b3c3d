import { createHash } from 'node:crypto';
import {
  Global,
  Inject,
  Module,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type Provider,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService } from '@nestjs/core';
import { EventEmitter2, EventEmitterModule } from '@nestjs/event-emitter';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { VerbBus } from '../kernel/verb-bus.js';
import { verbError } from '../protocol/mcp/errors.js';
import { AdminActs } from './bus/admin-acts.js';
import { Ledger } from './bus/ledger.js';
import { Notices } from './bus/notices.js';
import { NoticeListener } from './bus/on-notice.decorator.js';
import { isAuthConfigured, SETTINGS, type Settings } from './config/settings.js';
import { migrations, schemaState } from './database/migrate.js';
import { Pg } from './database/pg.js';
import { Presence } from './database/presence.js';
import { RowWriter } from './database/row-writer.js';
import { TxRunner } from './database/tx.js';
import { parseAllowList } from './http/outbound/address.js';
import { parseTrustProxy } from './http/server/client-address.js';
import { AnswerBudget } from './http/shares/answer-budget.js';
import { ReadShares } from './http/shares/read-shares.js';
import { Cursors } from './http/cursor.js';
import { FrontDoor } from './http/server/front-door.js';
import { reachableAt } from './http/server/origin-check.js';
import { PublicUrl } from './http/public-url.js';
import { SocketDoor } from './http/server/socket-door.js';
import { SafeFetch } from './http/outbound/safe-fetch.js';
import { SseStreams } from './http/streams/sse-streams.js';
import { JobsModule } from './jobs/jobs.module.js';
import type { QueueBackend } from './jobs/queue-backend.js';
import { SchemaChecks } from './schemas/schema-checks.js';
import { LineageSeal } from './secrets/lineage.js';
import { checkKey } from './secrets/sealed-columns.js';
import { SigningKeys } from './secrets/signing-keys.js';
import { Vault } from './secrets/vault.js';
import { HealthController } from './telemetry/health.controller.js';
import { HealthService } from './telemetry/health.service.js';
import { LOGGER, type Logger } from './telemetry/logger.js';
import { LoopWatch } from './telemetry/loop-watch.js';
import { HttpWatch } from './telemetry/http-watch.js';
import { Metrics } from './telemetry/metrics.js';
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
    private readonly discovery: DiscoveryService,
    private readonly notices: Notices,
    private readonly verbs: VerbBus,
    private readonly safeFetch: SafeFetch,
    private readonly health: HealthService,
    @Inject(Tracing) private readonly tracing: Tracing,
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
        { provide: Notices, useFactory: (pg: Pg) => new Notices(pg.pool, infra.directUrl, log), inject: [Pg] },
        { provide: Presence, useFactory: () => new Presence(infra.directUrl, log) },
        { provide: Vault, useFactory: () => new Vault(settings.encryptionKey, settings.otherEncryptionKey) },
        { provide: SigningKeys, useFactory: (pg: Pg, vault: Vault) => new SigningKeys(pg, vault), inject: [Pg, Vault] },
        { provide: Cursors, useFactory: (vault: Vault) => new Cursors(vault), inject: [Vault] },
        { provide: LineageSeal, useFactory: lineageSeal, inject: [Vault, SETTINGS] },
        SchemaChecks,
        AnswerBudget,
        ReadShares,
        { provide: PublicUrl, useFactory: () => new PublicUrl(settings) },
        ...trafficProviders(settings, log),
        {
          provide: VerbBus,
          useFactory: (ledger: Ledger, watchers: EventEmitter2) => createBus(ledger, watchers, log),
          inject: [Ledger, EventEmitter2],
        },
        {
          provide: Ledger,
          useFactory: (writer: RowWriter, metrics: Metrics) => new Ledger(writer, metrics),
          inject: [RowWriter, Metrics],
        },
        {
          provide: HealthService,
          useFactory: (pg: Pg, vault: Vault) => createHealth(pg, vault, infra),
          inject: [Pg, Vault],
        },
        { provide: Tracing, useFactory: () => Tracing.open(settings.OTEL_EXPORTER_OTLP_ENDPOINT) },
        { provide: Metrics, useFactory: () => new Metrics() },
        TxRunner,
        AdminActs,
        SseStreams,
      ],
      exports: exported,
    };
  }

  async onApplicationBootstrap(): Promise<void> {
    if (!this.verbs.hasDecider)
      throw new Error('the verb bus has no decider: import the policy module into the application');
    for (const wrapper of this.discovery.getProviders()) {
      for (const { methodName, meta } of this.listenersOf(wrapper.instance as object | undefined)) {
        const instance = wrapper.instance as Record<string, (payload: unknown) => void>;
        this.notices.on(meta, (payload) => instance[methodName]!(payload));
      }
    }
    await this.notices.listen();
  }

  private listenersOf(instance: object | undefined): { methodName: string; meta: Parameters<Notices['on']>[0] }[] {
    if (!instance || typeof instance !== 'object') return [];
    const prototype = Object.getPrototypeOf(instance) as object | null;
    if (!prototype || prototype === Object.prototype) return [];
    return Object.getOwnPropertyNames(prototype).flatMap((methodName) => {
      const method = Object.getOwnPropertyDescriptor(prototype, methodName)?.value as unknown;
      const meta =
        typeof method === 'function'
          ? (Reflect.getMetadata(NoticeListener.KEY, method) as Parameters<Notices['on']>[0] | undefined)
          : undefined;
      return meta ? [{ methodName, meta }] : [];
    });
  }

  /**
   * Runs before the other shutdown hooks, so that the process reports "not ready" while the others still finish their
   * work.
   */
  onModuleDestroy(): void {
    this.health.drain();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.notices.close();
    await this.safeFetch.close();
    await this.tracing.close();
  }
}

/** Providers for incoming and outgoing traffic, and for the watches that measure it. */
function trafficProviders(settings: Settings, log: Logger): Provider[] {
  return [
    {
      provide: SafeFetch,
      useFactory: (metrics: Metrics) =>
        new SafeFetch({
          allow: parseAllowList(settings.RIALTO_OUTBOUND_ALLOW),
          httpsOnly: settings.production,
          unanswered: (to) => metrics.ambiguousSends.inc({ to }),
        }),
      inject: [Metrics],
    },
    {
      provide: HttpWatch,
      useFactory: (metrics: Metrics) => new HttpWatch(metrics, log, parseTrustProxy(settings.RIALTO_TRUST_PROXY)),
      inject: [Metrics],
    },
    {
      provide: FrontDoor,
      useFactory: (watch: HttpWatch) =>
        new FrontDoor(
          watch,
          (err, { requestId }) => log.error({ err, requestId }, 'a request failed'),
          reachableAt(settings),
        ),
      inject: [HttpWatch],
    },
    {
      provide: SocketDoor,
      useFactory: (watch: HttpWatch) =>
        new SocketDoor(watch, settings.RIALTO_MAX_BODY_BYTES, (err, { requestId }) =>
          log.error({ err, requestId }, 'a WebSocket could not be opened'),
        ),
      inject: [HttpWatch],
    },
    {
      provide: LoopWatch,
      useFactory: (http: HttpWatch, metrics: Metrics) => new LoopWatch(http, metrics, log),
      inject: [HttpWatch, Metrics],
    },
  ];
}

function createBus(ledger: Ledger, watchers: EventEmitter2, log: Logger): VerbBus {
  const bus = new VerbBus({
    ledger,
    errorOf: verbError,
    onSubscriberError: (err, event) =>
      log.error({ err, verb: event.verb, phase: event.phase }, 'a verb subscriber threw'),
  });
  const names = { 'pre-verb': 'verb.pre', 'post-verb': 'verb.post', 'verb-error': 'verb.error' } as const;
  bus.subscribe(
    (event) => void watchers.emit(names[event.phase], event),
    (phase) => watchers.listenerCount(names[phase]) > 0,
  );
  return bus;
}

function createHealth(pg: Pg, vault: Vault, { settings, dataSource, queues }: Infrastructure): HealthService {
  const health = new HealthService();
  health.add({ name: 'database', run: async () => (await pg.pool.query('select 1'), { status: 'ok' }) });
  let schemaIsCurrent = false;
  health.add({
    name: 'schema',
    run: async () => {
      if (schemaIsCurrent) return { status: 'ok' };
      const { applied, needed } = await schemaState((dataSource.options as { url: string }).url);
      schemaIsCurrent = applied >= migrations.length;
      return schemaIsCurrent
        ? { status: 'ok' }
        : { status: 'down', detail: `schema_behind: ${applied} of ${needed} migrations` };
    },
  });
  health.add({
    name: 'queue',
    unanswered: 'degraded',
    run: () =>
      queues.ping().then(
        () => ({ status: 'ok' as const }),
        () => ({
          status: 'degraded' as const,
          detail: `${queues.kind} does not answer; work is found in the database`,
        }),
      ),
  });
  let keyOpens = false;
  health.add({
    name: 'encryption',
    run: async () => {
      if (keyOpens) return { status: 'ok' };
      const { opened, refused } = await checkKey(pg.pool, vault);
      if (refused && opened.length === 0) return { status: 'down', detail: refused.message };
      keyOpens = true;
      return { status: 'ok' };
    },
  });
  const configured = isAuthConfigured(settings);
  health.add({
    name: 'auth',
    run: () => Promise.resolve(configured ? { status: 'ok' } : { status: 'down', detail: 'A2A_SECRET is not set' }),
  });
  return health;
}

/**
 * Gateways that share `A2A_SECRET` can read each other's lineage; without the secret each gateway reads only its own.
 */
function lineageSeal(vault: Vault, { A2A_SECRET: secret }: Settings): LineageSeal {
  return new LineageSeal(
    secret === undefined
      ? vault.derive('lineage')
      : new Vault(createHash('sha256').update(secret).digest()).derive('lineage'),
  );
}
