import { AgentCard } from '@a2a-js/sdk';
import type { Transport } from '@a2a-js/sdk/client';
import { randomUUID } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { RialtoError } from '../../kernel/errors.js';
import type { OutboundPolicy } from '../../platform/http/outbound/safe-fetch.js';
import type { Endpoint } from './endpoint-choice.js';

const maxChannels = 64;

interface Channel {
  /** Key of its outbound policy. */
  readonly key: string;
  readonly transport: Transport;
}

/**
 * The SDK's gRPC transports, one for each address and version, kept open for later calls. TLS is used except for an
 * agent on an allow-listed loopback address; grpc-js accepts messages up to 4 MiB. The gRPC modules are loaded with
 * the first gRPC agent, because most deployments have none.
 */
export class GrpcChannels {
  private readonly open = new BoundedMap<string, Channel>(maxChannels, (channel) => this.closeChannel(channel));
  private grpc?: GrpcParts;

  constructor(private readonly policy: OutboundPolicy) {}

  /** Throws `url_not_allowed` before it opens a connection. */
  async transport({ url, version }: Endpoint): Promise<Transport> {
    const id = channelId({ url, version });
    const known = this.open.use(id);
    if (known) return known.transport;
    const made = await this.dial(url, version);
    const raced = this.open.get(id);
    if (raced) {
      this.closeChannel(made);
      return raced.transport;
    }
    this.open.set(id, made);
    return made.transport;
  }

  /**
   * Converts the error of a failed call to a RialtoError. When the memory of a connection is used up, its agent refuses
   * every later call on it, so the next call opens another one.
   */
  meaning(endpoint: Endpoint, error: unknown): RialtoError {
    if (this.grpc?.isExhausted(error)) this.drop(channelId(endpoint));
    return this.grpc?.grpcMeaning(error) ?? RialtoError.from(error);
  }

  close(): void {
    for (const id of [...this.open.keys()]) this.drop(id);
  }

  private drop(id: string): void {
    const channel = this.open.get(id);
    this.open.delete(id);
    if (channel) this.closeChannel(channel);
  }

  /** Calls in progress end regularly. */
  private closeChannel({ key, transport }: Channel): void {
    closeTransport(transport);
    this.grpc?.forgetPolicy(key);
  }

  private async dial(url: string, version: string): Promise<Channel> {
    this.grpc ??= await load();
    const { GrpcTransportFactory, checkedTarget, credentials, grpcTargetOf, vettedAddresses } = this.grpc;
    const target = grpcTargetOf(url, this.policy);
    const addresses = await vettedAddresses(target, this.policy);
    const isLocal = !/^https:/i.test(url) && addresses.every(isLoopback);
    const card = AgentCard.fromJSON({
      supportedInterfaces: [{ url, protocolBinding: 'GRPC', protocolVersion: version }],
    });
    // A target of its own for each channel, because grpc-js lets channels to the same target share connections.
    const key = randomUUID();
    const at = checkedTarget(key, target, this.policy);
    for (const face of card.supportedInterfaces) face.url = at;
    const grpcChannelCredentials = isLocal ? credentials.createInsecure() : credentials.createSsl();
    const grpcCallOptions = { interceptors: [this.grpc.guarding(version)] };
    const options = { grpcChannelCredentials, grpcCallOptions, legacyCompat: { enabled: true } };
    return { key, transport: await new GrpcTransportFactory(options).create(at, card) };
  }
}

/**
 * Closes the channel through a private member of the SDK, which has no method for it; an open channel would keep its
 * connection for half an hour.
 */
function closeTransport(transport: Transport): void {
  (transport as { grpcClient?: { close?: () => void } }).grpcClient?.close?.();
}

function channelId({ url, version }: Pick<Endpoint, 'url' | 'version'>): string {
  return `${version} ${url}`;
}

type GrpcParts = Awaited<ReturnType<typeof load>>;

async function load() {
  const { GrpcTransportFactory } = await import('@a2a-js/sdk/client/grpc');
  const { credentials } = await import('@grpc/grpc-js');
  const { checkedTarget, forgetPolicy, grpcTargetOf, vettedAddresses } = await import('./grpc-resolver.js');
  const { grpcMeaning, isExhausted } = await import('./grpc-error.js');
  const { guarding } = await import('./grpc-interceptor.js');
  return {
    GrpcTransportFactory,
    credentials,
    guarding,
    checkedTarget,
    forgetPolicy,
    grpcTargetOf,
    vettedAddresses,
    grpcMeaning,
    isExhausted,
  };
}

function isLoopback(address: string): boolean {
  return ipaddr.process(address).range() === 'loopback';
}
