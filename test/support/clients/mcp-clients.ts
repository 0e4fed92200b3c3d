import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client, StreamableHTTPClientTransport, type ClientOptions } from '@modelcontextprotocol/client';

export const modernRevision = '2026-07-28';
const identity = { name: 'rialto-test-client', version: '1.0.0' };

/** The methods that the tests need, the same for the clients of both SDKs. */
export interface McpClient {
  listTools(): Promise<{ tools: { name: string; description?: string; inputSchema: unknown; _meta?: unknown }[] }>;
  callTool(params: { name: string; arguments?: Record<string, unknown> }, options?: CallOptions): Promise<ToolReply>;
  close(): Promise<void>;
}

export interface CallOptions {
  signal?: AbortSignal;
  onprogress?: (progress: { progress: number; message?: string }) => void;
}

export interface ToolReply {
  content: { type: string; text: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
}

/**
 * Connects a client of the earlier SDK generation. `standing` resolves when the stream that it opens after its
 * handshake is open.
 */
export async function connectLegacySdk(url: string, token: string) {
  const client = new LegacyClient(identity);
  let opened: () => void;
  const standing = new Promise<void>((resolve) => (opened = resolve));
  const watched: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === 'GET' && response.ok) opened();
    return response;
  };
  const transport = new LegacyTransport(new URL(url), { requestInit: bearer(token), fetch: watched });
  await client.connect(transport);
  const call: McpClient['callTool'] = async (params, options) =>
    (await client.callTool(params, undefined, options)) as unknown as ToolReply;
  return {
    client,
    transport,
    standing,
    listTools: () => client.listTools(),
    callTool: call,
    close: () => client.close(),
  };
}

/** Connects a client of the current SDK in one of its modes: negotiating, legacy, or pinned to the newest revision. */
export async function connectSdk(
  url: string,
  token: string,
  mode: 'auto' | 'legacy' | 'pinned',
  options: ClientOptions = {},
) {
  const negotiation = mode === 'pinned' ? { pin: modernRevision } : mode;
  const client = new Client(identity, { ...options, versionNegotiation: { mode: negotiation } });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: bearer(token) });
  await client.connect(transport);
  const call: McpClient['callTool'] = async (params, given) =>
    (await client.callTool(params, given)) as unknown as ToolReply;
  return { client, transport, listTools: () => client.listTools(), callTool: call, close: () => client.close() };
}

/** All kinds of official clients that connect to the door. */
export const clientKinds = ['sdk v1', 'auto', 'legacy', 'pinned'] as const;

export function connectMcp(kind: (typeof clientKinds)[number], url: string, token: string): Promise<McpClient> {
  return kind === 'sdk v1' ? connectLegacySdk(url, token) : connectSdk(url, token, kind);
}

/** Returns the JSON-RPC error of a call. Throws when the call succeeds. */
export async function errorOf(call: Promise<unknown>): Promise<{ code: number; message: string; data?: any }> {
  const outcome = await call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!('error' in outcome))
    throw new Error(`expected an error, but the call returned ${JSON.stringify(outcome.value)}`);
  return outcome.error as { code: number; message: string };
}

/** Builds the headers and the body of a request of the 2026-07-28 revision. */
export function modernRequest(
  method: string,
  params: Record<string, unknown> = {},
  id: number | string = 1,
): { headers: Record<string, string>; body: Record<string, unknown> } {
  const name = params.name;
  return {
    headers: {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': modernRevision,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
    },
    body: {
      jsonrpc: '2.0',
      id,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': modernRevision,
          'io.modelcontextprotocol/clientInfo': identity,
          'io.modelcontextprotocol/clientCapabilities': {},
          ...(params._meta as object | undefined),
        },
      },
    },
  };
}

function bearer(token: string): RequestInit {
  return { headers: { authorization: `Bearer ${token}` } };
}
