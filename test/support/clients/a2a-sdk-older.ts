import type { AgentCard } from 'a2a-js-sdk-0.3';
import {
  ClientFactory,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type CallInterceptor,
  type Client,
  type TransportFactory,
} from 'a2a-js-sdk-0.3/client';
import { GrpcTransportFactory } from 'a2a-js-sdk-0.3/client/grpc';
import type { Caller } from '../gateway/caller.js';
import type { OlderBinding } from '../stubs/sdk-agent-older.js';

/** Creates clients of the official SDK of the line 0.3, and closes their gRPC channels. */
export class OlderSdkClients {
  private readonly channels: { close?: () => void }[] = [];

  constructor(private readonly gateway: Caller) {}

  /**
   * Creates a client from a card. It uses one binding only.
   * @param headers headers of every call; in gRPC, metadata.
   */
  open(cardPath: string, binding: OlderBinding, headers: Record<string, string> = {}): Promise<Client> {
    const factory = factoryFor(binding, { authorization: `Bearer ${this.gateway.token}`, ...headers });
    return this.keep(factory.createFromUrl(`${this.gateway.url}${cardPath}`, ''));
  }

  /** Creates a client from a card that was read before. It uses one binding only. */
  ofCard(card: AgentCard, binding: OlderBinding, token: string): Promise<Client> {
    return this.keep(factoryFor(binding, { authorization: `Bearer ${token}` }).createFromAgentCard(card));
  }

  close(): void {
    for (const channel of this.channels.splice(0)) channel.close?.();
  }

  private async keep(making: Promise<Client>): Promise<Client> {
    const client = await making;
    const { grpcClient } = client.transport as { grpcClient?: object };
    if (grpcClient) this.channels.push(grpcClient);
    return client;
  }
}

function factoryFor(binding: OlderBinding, sent: Record<string, string>): ClientFactory {
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), ...sent } });
  const transports: Record<OlderBinding, TransportFactory> = {
    JSONRPC: new JsonRpcTransportFactory({ fetchImpl }),
    'HTTP+JSON': new RestTransportFactory({ fetchImpl }),
    GRPC: new GrpcTransportFactory(),
  };
  return new ClientFactory({
    transports: [transports[binding]],
    clientConfig: { interceptors: binding === 'GRPC' ? [withMetadata(sent)] : [] },
  });
}

function withMetadata(metadata: Record<string, string>): CallInterceptor {
  return {
    before: (args) => {
      args.options = { ...args.options, serviceParameters: { ...args.options?.serviceParameters, ...metadata } };
      return Promise.resolve();
    },
    after: () => Promise.resolve(),
  };
}
