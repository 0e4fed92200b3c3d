import type { RequestListener, Server } from 'node:http';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { RequestHandler } from 'express';
import { GrpcServer } from './a2a-server/grpc-server.js';
import { AppModule } from './app.module.js';
import { entities } from './entities.js';
import { systemClock } from './kernel/clock.js';
import { RialtoError } from './kernel/errors.js';
import { loadSettings, type Settings } from './platform/config/settings.js';
import { startEmbeddedPostgres } from './platform/database/embedded-postgres.js';
import { checkDatabase, createDataSource, requireSchema } from './platform/database/migrate.js';
import { tellingOutagesOnce } from './platform/database/outage-log.js';
import { keepsStatements, NamelessClient, PoolClient } from './platform/database/pool-client.js';
import { jsonBodies } from './platform/http/body.js';
import { AnswerBudget } from './platform/http/shares/answer-budget.js';
import { ReadShares } from './platform/http/shares/read-shares.js';
import { LargeAnswers } from './platform/http/shares/large-answers.interceptor.js';
import { FrontDoor } from './platform/http/server/front-door.js';
import { PipelinedRequests } from './platform/http/server/pipelined-requests.js';
import { FrontServer } from './platform/http/server/front-server.js';
import type { DoorRequest } from './platform/http/http.types.js';
import { listening } from './platform/http/server/listening.js';
import { PublicUrl } from './platform/http/public-url.js';
import { SocketDoor } from './platform/http/server/socket-door.js';
import { mountOpenApi } from './platform/http/openapi.js';
import { ProblemFilter } from './platform/http/problem.filter.js';
import { rejectUnsafePaths, securityHeaders, ValidationBySchema } from './platform/http/request-checks.js';
import { mountBoard } from './platform/jobs/board.js';
import { prepareQueues } from './platform/jobs/queue-backend.js';
import type { Infrastructure } from './platform/platform.module.js';
import { createLogger, type Logger } from './platform/telemetry/logger.js';
import { Metrics } from './platform/telemetry/metrics.js';
import { AuthService, defaultOrg } from './policy/auth.service.js';
import { Bootstrap } from './policy/bootstrap.js';
import { DeclaredOrgs } from './policy/declared-orgs.js';
import { OperatorGate } from './policy/operator-gate.js';
import { DeclaredServers } from './upstreams/declared-servers.js';
import { ServerReader } from './upstreams/server-reader.js';
import { Declarations } from './registry/declarations.js';
import { ExecutionTokens } from './tasks/execution-tokens.js';

/** A running process of Rialto. */
export interface Gateway {
  /** Base URL of the gateway, without a trailing slash. */
  readonly url: string;
  readonly settings: Settings;
  readonly metricsPort?: number;
  /** Port of the gRPC services; undefined while they are off. */
  readonly grpcPort?: number;
  /** Path of the file with the admin token; only in development. */
  readonly tokenFile?: string;
  /** Returns a provider of the application, for tests. */
  get<Provider>(type: abstract new (...args: never[]) => Provider): Provider;
  /** Drains and stops all parts that were started, the embedded database last. */
  close(): Promise<void>;
}

export interface StartOptions {
  readonly log?: Logger;
  /** Lets the database server run with fsync off, for tests; `NODE_ENV=test` also allows it. */
  readonly databaseMayForget?: boolean;
}

/** Milliseconds that answers in progress may take while the process stops. */
const drainMs = 25_000;
/** Milliseconds for which a start tolerates a database outage, and the pause between tries. */
const startTimeoutMs = 30_000;
const startPauseMs = 500;
const workerPaths = new Set(['/livez', '/readyz', '/version']);

/**
 * Starts one process in the role that its environment names. Throws SettingsError or RialtoError with one clear line
 * for each problem.
 */
export async function startGateway(
  env: Record<string, string | undefined>,
  options: StartOptions = {},
): Promise<Gateway> {
  const settings = loadSettings(env);
  const log = tellingOutagesOnce(options.log ?? createLogger(settings.RIALTO_LOG_LEVEL));
  const stops: (() => Promise<unknown> | void)[] = [];
  const close = once(async () => {
    // A part that fails to stop must not keep other parts from stopping, the database least of all.
    for (const stop of stops.reverse()) {
      await Promise.resolve()
        .then(stop)
        .catch((err: unknown) => log.debug({ err }, 'a part of the gateway did not stop cleanly'));
    }
  });
  try {
    const mayForget = options.databaseMayForget ?? settings.NODE_ENV === 'test';
    const url = await openDatabase(settings, log, stops, mayForget);
    const infra = await openInfrastructure(settings, url, log, stops);
    const { app, baseUrl, tokenFile } = await openDoors(infra, stops);
    const metrics = app.get(Metrics);
    const metricsPort =
      settings.METRICS_PORT === 0
        ? undefined
        : await listening('METRICS_PORT', settings.METRICS_PORT, metrics.listen(settings.METRICS_PORT, settings.HOST));
    stops.push(() => metrics.close());
    const { port: grpcPort } = app.get(GrpcServer);
    return { url: baseUrl, settings, metricsPort, grpcPort, tokenFile, get: (type) => app.get(type), close };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

type Stops = (() => Promise<unknown> | void)[];

async function openDatabase(settings: Settings, log: Logger, stops: Stops, mayForget: boolean): Promise<string> {
  let url = settings.DATABASE_URL;
  if (url === undefined) {
    const embedded = await startEmbeddedPostgres({
      dataDir: resolve(settings.RIALTO_DATA_DIR),
      log: (line) => log.debug(line),
    });
    stops.push(() => embedded.stop());
    url = embedded.url;
  }
  await checkDatabase(url, mayForget);
  await requireSchema(settings, url);
  return url;
}

async function openInfrastructure(settings: Settings, url: string, log: Logger, stops: Stops): Promise<Infrastructure> {
  const directUrl = settings.RIALTO_DATABASE_DIRECT_URL ?? url;
  const isPooled = directUrl !== url && !(await keepsStatements(url));
  if (isPooled)
    log.info('DATABASE_URL points to a pooler without named prepared statements: statements are sent without names');
  const dataSource = await createDataSource(url, entities, isPooled ? NamelessClient : PoolClient).initialize();
  stops.push(() => (dataSource.isInitialized ? dataSource.destroy() : undefined));
  const queues = await prepareQueues(settings, directUrl, log);
  stops.push(() => queues.close());
  return { settings, dataSource, queues, log, directUrl };
}

async function openDoors(
  infra: Infrastructure,
  stops: Stops,
): Promise<{ app: NestExpressApplication; baseUrl: string; tokenFile?: string }> {
  const { settings } = infra;
  const front = new FrontServer();
  const app = await NestFactory.create<NestExpressApplication>(AppModule.register(infra), front, {
    bodyParser: false,
    logger: false,
    abortOnError: false,
  });
  stops.push(async () => {
    const late = setTimeout(() => front.cut(), drainMs);
    front.beginToClose();
    await app.close().finally(() => clearTimeout(late));
  });
  app.disable('x-powered-by').disable('etag');
  app.use(securityHeaders, rejectUnsafePaths);
  const { RIALTO_MAX_BODY_BYTES: maxBody } = settings;
  const boardBodies = jsonBodies(maxBody, () => Promise.resolve(true)); // mounted behind the operator gate
  mountBoard(app, app.get(OperatorGate), boardBodies as unknown as RequestHandler);
  mountOpenApi(app, app.get(OperatorGate));
  app.use(jsonBodies(maxBody, (request) => isKnown(app, request)));
  app.useGlobalPipes(new ValidationBySchema());
  app.useGlobalFilters(new ProblemFilter(infra.log));
  app.useGlobalInterceptors(app.get(ReadShares), new LargeAnswers(app.get(AnswerBudget)));
  await app.init();
  const tokenFile = await retryWhileUnavailable(infra.log, () => makeDeclared(app));
  void app.get(ServerReader).sweep();
  const server = frontedServer(app, front, settings);
  await listening(
    'PORT',
    settings.PORT,
    new Promise((done, fail) => server.once('error', fail).listen(settings.PORT, settings.HOST, () => done(undefined))),
  );
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : settings.PORT;
  app.get(PublicUrl).listensOn(port);
  return {
    app,
    baseUrl: `http://${settings.HOST.includes(':') ? `[${settings.HOST}]` : settings.HOST}:${port}`,
    tokenFile,
  };
}

/**
 * Creates the first org and brings the declared orgs, servers, agents and policies up to date, before the first call.
 * Returns the path of the admin token's file.
 */
async function makeDeclared(app: NestExpressApplication): Promise<string | undefined> {
  const { org, tokenFile } = await app.get(Bootstrap).prepareDefaultOrg();
  await app.get(DeclaredOrgs).reconcile();
  await app.get(DeclaredServers).reconcile(org);
  await app.get(Declarations).reconcile({ id: org, slug: defaultOrg });
  return tokenFile;
}

/**
 * Repeats idempotent work while the database fails over or a connection to it breaks, so that the start does not fail.
 */
async function retryWhileUnavailable<Result>(log: Logger, work: () => Promise<Result>): Promise<Result> {
  for (const until = systemClock.elapsed() + startTimeoutMs; ; await sleep(startPauseMs)) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || systemClock.elapsed() > until) throw error;
      log.warn({ err: error.cause ?? error }, 'the database is not available; trying again');
    }
  }
}

const isUnavailable = (error: unknown): error is RialtoError =>
  error instanceof RialtoError && error.code === 'unavailable';

/**
 * True for a request with a credential, or with an execution token of a task: the gateway reads only the bodies of
 * these.
 */
async function isKnown(app: NestExpressApplication, request: DoorRequest): Promise<boolean> {
  return app.get(ExecutionTokens).scopeOf(request) !== undefined || app.get(AuthService).knows(request);
}

/** Returns Nest's own server with the front door as its only listener, and with WebSockets; Nest still closes it. */
function frontedServer(app: NestExpressApplication, front: FrontServer, settings: Settings): Server {
  const server = app.getHttpServer();
  const express: RequestListener = app.getHttpAdapter().getInstance();
  server.off('request', express);
  const isOpen = (path: string): boolean => settings.RIALTO_ROLE !== 'worker' || workerPaths.has(path);
  const serve = app.get(FrontDoor).front(express, isOpen);
  const pipelined = new PipelinedRequests();
  server.on('request', (request, response) => pipelined.serve(request, response, () => void serve(request, response)));
  const sockets = app.get(SocketDoor);
  sockets.guard(server, front.order, isOpen);
  front.takesUpgrade = (request) => sockets.takes(request);
  return server;
}

function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
