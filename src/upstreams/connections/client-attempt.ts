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
  /** Of the whole handshake. */
  readonly connectMs: number;
  /** Of the question whether the server speaks the 2026-07-28 revision. */
  readonly probeMs: number;
  /** Gets each client before it says anything. */
  readonly prepare: (client: Client) => void;
}

/** A client that is connected. */
export interface ConnectedClient {
  readonly client: Client;
  readonly line: Transport & Partial<DiscoveryLine>;
}

/** Opens one connection by the SDK. Loads it then: it is memory that a gateway without MCP servers does not need. */
export function attemptClient(options: AttemptOptions): Attempt<ConnectedClient> {
  const { approach, capabilities, connectMs, probeMs } = options;
  let open: Partial<ConnectedClient> = {};
  let isStarted = false;
  let isOver = false;
  const end = (): void => {
    void open.client?.close().catch(() => undefined);
    // While a client asks which era its server is of, the line is not its own yet.
    void open.line?.close().catch(() => undefined);
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
    const line = await options.transport();
    open = { client, line };
    const start = line.start.bind(line);
    line.start = async () => {
      await start();
      isStarted = true;
    };
    if (isOver) throw tooSlow();
    await client.connect(line, { timeout: connectMs });
    if (isOver) throw tooSlow();
    if (isModernVersion(client.getNegotiatedProtocolVersion())) keepRaw(line);
    keepOrder(line, isJSONRPCResponse);
    return { client, line };
  };
  const opened = connect().catch((thrown: unknown) => {
    end();
    throw thrown;
  });
  // Nobody may be left to hear of it.
  opened.catch(() => undefined);
  const close = (): void => {
    isOver = true;
    end();
  };
  const isHasty = (): boolean => {
    const discovery = open.line?.discovery;
    return discovery === 'unanswered' || discovery === 'late';
  };
  return { opened, isStarted: () => isStarted, isHasty, close };
}
