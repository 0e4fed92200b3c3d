import { trimEnd } from '../../kernel/text.js';
import type { Settings } from '../config/settings.js';

const anyAddress = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '[::1]'],
]);

/**
 * The public address of this gateway: RIALTO_PUBLIC_URL, else the listening address, which is known once the process
 * listens.
 */
export class PublicUrl {
  private address: string;
  private grpcPort?: number;

  constructor(private readonly settings: Pick<Settings, 'RIALTO_PUBLIC_URL' | 'HOST' | 'PORT' | 'GRPC_PORT'>) {
    this.address = this.addressOf(settings.PORT);
    this.grpcPort = settings.GRPC_PORT;
  }

  /** Sets the port that the process listens on; the setting may be 0. */
  listensOn(port: number): void {
    this.address = this.addressOf(port);
  }

  /** Sets the port that gRPC listens on. */
  listensForGrpcOn(port: number): void {
    this.grpcPort = port;
  }

  /** The base URL without a trailing slash. */
  get base(): string {
    const { RIALTO_PUBLIC_URL: given } = this.settings;
    return given === undefined ? this.address : trimEnd(given, '/');
  }

  /** `host` and `host:port` of the base URL: the allowed texts behind the `@` of a handle. */
  get hosts(): readonly string[] {
    const { host, hostname } = new URL(this.base);
    return [hostname, host];
  }

  /** `host:port` of the gRPC services; undefined when there are none (v1.0.1 section 5.8: no scheme). */
  get grpc(): string | undefined {
    return this.grpcPort === undefined ? undefined : `${new URL(this.base).hostname}:${this.grpcPort}`;
  }

  private addressOf(port: number): string {
    const { HOST: host } = this.settings;
    return `http://${anyAddress.get(host) ?? (host.includes(':') ? `[${host}]` : host)}:${port}`;
  }
}
