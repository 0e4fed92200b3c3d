import type { Client, Transport } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../kernel/json.js';
import { VERSION } from '../../platform/telemetry/version.js';
import { tooSlow, type Approach, type Attempt } from './era-plan.js';
import { keepOrder } from './message-order.js';
import { isModernVersion, keepRaw } from '../transports/raw-results.js';
import type { DiscoveryLine } from '../transports/stdio.transport.js';

const newestRevision = '2026-07-28';

export interface AttemptOptions {
  readonly approach: Approach;
  readonly capabilities: JsonObject;
  readonly transport: () => Promise<Transport>;
  /** Timeout of the whole handshake. */
  readonly connectMs: number;
  /** Timeout of the request that tests whether the server speaks the 2026-07-28 revision. */
  readonly probeMs: number;
  /** Called with each client before it sends anything. */
  readonly prepare: (client: Client) => void;
}

/** Client with an open connection. */
export interface ConnectedClient {
  readonly client: Client;
  readonly transport: Transport & Partial<DiscoveryLine>;
}

/** Opens one connection with the SDK. Imports the SDK only then, to save memory in a gateway without MCP servers. */
export function attemptClient(options: AttemptOptions): Attempt<ConnectedClient> {
  const { approach, capabilities, connectMs, probeMs } = options;
  let open: Partial<ConnectedClient> = {};
  let isStarted = false;
  let isAbandoned = false;
  const closeOpen = (): void => {
    void open.client?.close().catch(() => undefined);
    // While a client tests the era of its server, it does not own the transport yet.
    void open.transport?.close().catch(() => undefined);
  };
  const connect = async (): Promise<ConnectedClient> => {
    const { Client, isJSONRPCResponse } = await import('@modelcontextprotocol/client');
    const probe = { timeoutMs: probeMs };
    const mode = approach === 'modern' ? { pin: newestRevision } : approach;
    const client = new Client(
      { name: VERSION.name, title: 'Rialto', version: VERSION.version },
      { capabilities, versionNegotiation: { mode, probe } },
    );
    options.prepare(client);
    const transport = await options.transport();
    open = { client, transport };
    const start = transport.start.bind(transport);
    transport.start = async () => {
      await start();
      isStarted = true;
    };
    if (isAbandoned) throw tooSlow();
    await client.connect(transport, { timeout: connectMs });
    if (isAbandoned) throw tooSlow();
    if (isModernVersion(client.getNegotiatedProtocolVersion())) keepRaw(transport);
    keepOrder(transport, isJSONRPCResponse);
    return { client, transport };
  };
  const opened = connect().catch((thrown: unknown) => {
    closeOpen();
    throw thrown;
  });
  // The attempt may be abandoned; without a handler its rejection would be unhandled.
  opened.catch(() => undefined);
  const close = (): void => {
    isAbandoned = true;
    closeOpen();
  };
  const isHasty = (): boolean => {
    const discovery = open.transport?.discovery;
    return discovery === 'unanswered' || discovery === 'late';
  };
  return { opened, isStarted: () => isStarted, isHasty, close };
}
