import { Role, SendMessageRequest, TaskState } from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type CallInterceptor,
  type Client,
  type TransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import type { Caller } from '../gateway/caller.js';

/** One protocol version over one binding, for which the official client is created. */
export interface SdkWire {
  readonly version: '1.0' | '0.3';
  readonly binding: 'JSONRPC' | 'HTTP+JSON' | 'GRPC';
}

export const sdkWires: SdkWire[] = (['1.0', '0.3'] as const).flatMap((version) =>
  (['JSONRPC', 'HTTP+JSON', 'GRPC'] as const).map((binding) => ({ version, binding })),
);

export interface SdkClientOptions {
  readonly agent?: string;
  readonly token?: string | null;
  /** Headers of every call; in gRPC, metadata. */
  readonly headers?: Record<string, string>;
  /** Collects the HTTP status of each answer. */
  readonly statuses?: number[];
  /** Path of the card below the url of the gateway. When absent, the card of the agent `agent` is used. */
  readonly cardPath?: string;
}

/**
 * The default agent. gRPC of v0.3 cannot name an agent, so only the card of the default agent lists it. `setUpSdk`
 * makes this agent the default.
 */
const defaultAgent = 'echo03';

/** Prepares the org for `sdkClient` with v0.3 over gRPC. The agents must already be published. */
export async function setUpSdk(gateway: Caller): Promise<void> {
  const { status } = await gateway.call('PATCH', '/api/orgs/default', { defaultAgent });
  if (status !== 200) throw new Error(`setting the default agent failed with status ${status}`);
}

/** Creates the official client from the card of a published agent. It uses one version and one binding only. */
export function sdkClient(gateway: Caller, wire: SdkWire, options: SdkClientOptions = {}) {
  const { binding, version } = wire;
  const { agent = version === '1.0' ? 'echo' : 'echo03', token = gateway.token, headers = {}, cardPath } = options;
  const sent: Record<string, string> = { ...(token !== null && { authorization: `Bearer ${token}` }), ...headers };
  // A v0.3 card has no tenant, so callers of another agent name it in metadata.
  const metadata = version === '0.3' ? { ...sent, 'rialto-agent': agent } : sent;
  const found = version === '0.3' && binding === 'GRPC' ? defaultAgent : agent;
  const factory = factoryFor(wire, binding === 'GRPC' ? metadata : sent, options.statuses);
  if (cardPath !== undefined) return opened(factory.createFromUrl(`${gateway.url}${cardPath}`, ''));
  return opened(factory.createFromUrl(`${gateway.url}/a2a/agents/${found}/`, '.well-known/agent-card.json'));
}

/** Creates the official client from the text of a card. It uses one version and one binding only. */
export function sdkClientOfCard(card: object, wire: SdkWire, token: string) {
  const fetchImpl = () => Promise.resolve(Response.json(card));
  const factory = factoryFor(wire, { authorization: `Bearer ${token}` }, [], fetchImpl);
  return opened(factory.createFromUrl('http://card.example/', ''));
}

/** @param sent headers of every call; in gRPC, metadata. */
function factoryFor(
  { binding, version }: SdkWire,
  sent: Record<string, string>,
  statuses?: number[],
  fetchCard?: typeof fetch,
): ClientFactory {
  const legacyCompat = { enabled: version === '0.3' };
  const fetchImpl: typeof fetch = async (input, init) => {
    const headers = { ...Object.fromEntries(new Headers(init?.headers)), ...sent };
    const response = await fetch(input, { ...init, headers });
    statuses?.push(response.status);
    return response;
  };
  const transports: Record<SdkWire['binding'], TransportFactory> = {
    JSONRPC: new JsonRpcTransportFactory({ fetchImpl, legacyCompat }),
    'HTTP+JSON': new RestTransportFactory({ fetchImpl, legacyCompat }),
    GRPC: new GrpcTransportFactory({ legacyCompat }),
  };
  return new ClientFactory({
    transports: [transports[binding]],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat, ...(fetchCard && { fetchImpl: fetchCard }) }),
    clientConfig: { interceptors: binding === 'GRPC' ? [withMetadata(sent)] : [] },
  });
}

const channels: { close?: () => void }[] = [];

async function opened(making: Promise<Client>): Promise<Client> {
  const client = await making;
  const { base, grpcClient } = client.transport as { base?: { grpcClient?: object }; grpcClient?: object };
  const channel = grpcClient ?? base?.grpcClient;
  if (channel) channels.push(channel);
  return client;
}

/** Closes the gRPC channels. The SDK cannot close a gRPC client, and an open channel would keep the test running. */
export function closeSdkClients(): void {
  for (const channel of channels.splice(0)) channel.close?.();
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

let messages = 0;

/**
 * Builds a SendMessageRequest of the SDK.
 * @param parts in ProtoJSON, or one text.
 */
export function sdkSend(parts: object[] | string, message: object = {}, configuration?: object): SendMessageRequest {
  return SendMessageRequest.fromJSON({
    message: {
      messageId: `m-${++messages}-${Math.random().toString(36).slice(2)}`,
      role: 'ROLE_USER',
      parts: typeof parts === 'string' ? [{ text: parts }] : parts,
      ...message,
    },
    ...(configuration && { configuration }),
  });
}

export const states = TaskState;
export const roles = Role;
