import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import type { Server, ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { maxConnections } from '../platform/http/server/front-server.js';
import { listening } from '../platform/http/server/listening.js';
import { PublicUrl } from '../platform/http/public-url.js';
import { limitConnections } from '../platform/library-internals/grpc-listeners.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { grpcMethods, type GrpcMethod } from '../protocol/a2a/grpc.js';
import { GrpcDoor, type NewMetadata } from './grpc.door.js';

/** How long running calls may take while the process stops, in milliseconds. */
const drainMs = 5_000;
const keepaliveMs = { every: 30_000, answer: 10_000 };
const maxStreams = 200;

/**
 * gRPC server without TLS, like the HTTP server. Listens when a port is configured, before the process reports that
 * it is ready.
 */
@Injectable()
export class GrpcServer implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  /** Port that the server listens on; undefined without one. */
  port?: number;
  private server?: Server;
  private stopped?: Promise<void>;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly door: GrpcDoor,
    private readonly publicUrl: PublicUrl,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { GRPC_PORT: port, HOST: host, RIALTO_ROLE: role, RIALTO_MAX_BODY_BYTES: maxBody } = this.settings;
    if (port === undefined || role === 'worker') return;
    const grpc = await import('@grpc/grpc-js');
    const { guardCalls } = await import('./grpc-guard.js');
    const logDebug = (line: string): void => this.log.debug({ grpc: line }, 'grpc-js');
    grpc.setLogger({ error: logDebug, info: logDebug, debug: logDebug });
    this.server = new grpc.Server({
      interceptors: [guardCalls(this.door)],
      'grpc.max_receive_message_length': maxBody,
      'grpc.max_concurrent_streams': maxStreams,
      'grpc.keepalive_time_ms': keepaliveMs.every,
      'grpc.keepalive_timeout_ms': keepaliveMs.answer,
    });
    for (const service of new Set(grpcMethods.map((method) => method.service))) {
      const methods = grpcMethods.filter((method) => method.service === service);
      this.server.addService(
        definitionOf(methods),
        this.implement(methods, () => new grpc.Metadata()),
      );
    }
    const address = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    this.port = await listening('GRPC_PORT', port, bind(this.server, address, grpc.ServerCredentials.createInsecure()));
    limitConnections(this.server, maxConnections);
    this.publicUrl.listensForGrpcOn(this.port);
  }

  /** Begins to stop: accepts no new calls and ends streams. Running unary calls continue while HTTP drains. */
  beforeApplicationShutdown(): void {
    const { server } = this;
    if (!server) return;
    this.stopped = new Promise((resolve) => {
      const timer = setTimeout(() => server.forceShutdown(), drainMs);
      server.tryShutdown(() => {
        clearTimeout(timer);
        server.forceShutdown();
        resolve();
      });
      this.door.endStreams();
    });
  }

  onApplicationShutdown(): Promise<void> | undefined {
    return this.stopped;
  }

  private implement(methods: readonly GrpcMethod[], newMetadata: NewMetadata): UntypedServiceImplementation {
    const { door } = this;
    return Object.fromEntries(
      methods.map((method) => [
        method.rpc,
        method.stream
          ? (call: Parameters<GrpcDoor['handleStream']>[1]) => void door.handleStream(method, call, newMetadata)
          : (call: Parameters<GrpcDoor['handleUnary']>[1], answer: Parameters<GrpcDoor['handleUnary']>[2]) =>
              void door.handleUnary(method, call, answer, newMetadata),
      ]),
    );
  }
}

/** Messages stay bytes here: the door decodes them after it has identified the caller. */
function definitionOf(methods: readonly GrpcMethod[]): ServiceDefinition {
  const asIs = (bytes: Buffer): Buffer => bytes;
  return Object.fromEntries(
    methods.map(({ service, rpc, stream }) => [
      rpc,
      {
        path: `/${service}/${rpc}`,
        requestStream: false,
        responseStream: stream,
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      },
    ]),
  );
}

function bind(server: Server, address: string, credentials: Parameters<Server['bindAsync']>[1]): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => {
      if (!error) return resolve(port);
      // The error has the code of the system call in its text only.
      reject(Object.assign(error, { code: /\bE[A-Z]{3,}\b/.exec(error.message)?.[0] }));
    });
  });
}
