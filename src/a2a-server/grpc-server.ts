import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import type { Server, ServiceDefinition, UntypedServiceImplementation } from '@grpc/grpc-js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { listening } from '../platform/http/server/listening.js';
import { PublicUrl } from '../platform/http/public-url.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { grpcMethods, type GrpcMethod } from '../protocol/a2a/grpc.js';
import { GrpcDoor, type NewMetadata } from './grpc.door.js';

/** How long calls that are being answered may take while the process stops. */
const drainMs = 5_000;
const keepaliveMs = { every: 30_000, answer: 10_000 };
const maxStreams = 200;

/** The gRPC server: bound when there is a port for it, before the process says that it is ready. Without TLS, as HTTP is. */
@Injectable()
export class GrpcServer implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  /** The bound port; undefined while there is none. */
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
    const quiet = (line: string): void => this.log.debug({ grpc: line }, 'grpc-js');
    grpc.setLogger({ error: quiet, info: quiet, debug: quiet });
    this.server = new grpc.Server({
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
    this.publicUrl.listensForGrpcOn(this.port);
  }

  /** Begins to stop: no new calls, streams end; what is being answered goes on beside what HTTP still answers. */
  beforeApplicationShutdown(): void {
    const { server } = this;
    if (!server) return;
    this.stopped = new Promise((resolve) => {
      const late = setTimeout(() => server.forceShutdown(), drainMs);
      server.tryShutdown(() => {
        clearTimeout(late);
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
          ? (call: Parameters<GrpcDoor['stream']>[1]) => void door.stream(method, call, newMetadata)
          : (call: Parameters<GrpcDoor['unary']>[1], answer: Parameters<GrpcDoor['unary']>[2]) =>
              void door.unary(method, call, answer, newMetadata),
      ]),
    );
  }
}

/** Messages stay bytes here: they are read after it is known who sent them. */
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
      // The code of the system call stands in the text alone.
      reject(Object.assign(error, { code: /\bE[A-Z]{3,}\b/.exec(error.message)?.[0] }));
    });
  });
}
