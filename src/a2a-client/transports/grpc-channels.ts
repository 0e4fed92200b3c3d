import { AgentCard } from '@a2a-js/sdk';
import type { Transport } from '@a2a-js/sdk/client';
import { randomUUID } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { RialtoError } from '../../kernel/errors.js';
import type { OutboundPolicy } from '../../platform/http/outbound/safe-fetch.js';
import type { Endpoint } from './endpoint-choice.js';

const maxChannels = 64;

/**
 * The SDK's gRPC transports, one for each address and version, kept open for later calls. TLS is used except for an
 * agent on an allow-listed loopback address; grpc-js accepts messages up to 4 MiB. The gRPC modules are loaded with
 * the first gRPC agent, because most deployments have none.
 */
export class GrpcChannels {
  private readonly key = randomUUID();
  private readonly open = new Map<string, Transport>();
  private grpc?: GrpcParts;

  constructor(private readonly policy: OutboundPolicy) {}

  /** Throws `url_not_allowed` before it opens a connection. */
  async transport({ url, version }: Endpoint): Promise<Transport> {
    const id = `${version} ${url}`;
    const known = this.open.get(id);
    if (known) {
      // The map is ordered by last use, and the first entry is discarded first.
      this.open.delete(id);
      this.open.set(id, known);
      return known;
    }
    const made = await this.dial(url, version);
    const raced = this.open.get(id);
    if (raced) return raced;
    if (this.open.size >= maxChannels) this.discard(this.open.keys().next().value!);
    this.open.set(id, made);
    return made;
  }

  /** Converts the error of a failed call to a RialtoError. */
  meaning(error: unknown): RialtoError {
    return this.grpc?.grpcMeaning(error) ?? RialtoError.from(error);
  }

  close(): void {
    for (const id of [...this.open.keys()]) this.discard(id);
    this.grpc?.forgetPolicy(this.key);
  }

  private async dial(url: string, version: string): Promise<Transport> {
    this.grpc ??= await load();
    const { GrpcTransportFactory, checkedTarget, credentials, grpcTargetOf, vettedAddresses } = this.grpc;
    const target = grpcTargetOf(url, this.policy);
    const addresses = await vettedAddresses(target, this.policy);
    const isLocal = !/^https:/i.test(url) && addresses.every(isLoopback);
    const card = AgentCard.fromJSON({
      supportedInterfaces: [{ url, protocolBinding: 'GRPC', protocolVersion: version }],
    });
    const at = checkedTarget(this.key, target, this.policy);
    for (const face of card.supportedInterfaces) face.url = at;
    const grpcChannelCredentials = isLocal ? credentials.createInsecure() : credentials.createSsl();
    const grpcCallOptions = { interceptors: [this.grpc.guarding(version)] };
    const options = { grpcChannelCredentials, grpcCallOptions, legacyCompat: { enabled: true } };
    return new GrpcTransportFactory(options).create(at, card);
  }

  /**
   * Closes the channel through a private member of the SDK, which has no method for it; an open channel would keep its
   * connection for half an hour.
   */
  private discard(id: string): void {
    const transport = this.open.get(id) as { grpcClient?: { close?: () => void } } | undefined;
    this.open.delete(id);
    transport?.grpcClient?.close?.();
  }
}

type GrpcParts = Awaited<ReturnType<typeof load>>;

async function load() {
  const { GrpcTransportFactory } = await import('@a2a-js/sdk/client/grpc');
  const { credentials } = await import('@grpc/grpc-js');
  const { checkedTarget, forgetPolicy, grpcTargetOf, vettedAddresses } = await import('./grpc-resolver.js');
  const { grpcMeaning } = await import('./grpc-error.js');
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
  };
}

function isLoopback(address: string): boolean {
  return ipaddr.process(address).range() === 'loopback';
}
