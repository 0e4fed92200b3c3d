import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { parseAllowList } from '../platform/http/address.js';
import { SafeFetch } from '../platform/http/safe-fetch.js';
import { VERSION } from '../platform/telemetry/version.js';
import { CommandError } from './io.js';

const limits = { deadlineMs: 5_000, maxBytes: 1_048_576 };

/** Asks a running gateway as its users do. */
export class GatewayProbe {
  private readonly client: SafeFetch;

  /** @param url base address, without a trailing slash. */
  constructor(private readonly url: string) {
    this.client = new SafeFetch({ allow: parseAllowList(new URL(url).origin), httpsOnly: false });
  }

  /** Whether a gateway, not something else, listens there. */
  async answers(): Promise<boolean> {
    try {
      const { body } = await this.client.request({ method: 'GET', url: `${this.url}/version`, ...limits });
      return (JSON.parse(body.toString()) as { name?: unknown }).name === VERSION.name;
    } catch {
      return false;
    }
  }

  /** Throws with the checks that are down. */
  async readiness(): Promise<string> {
    const { status, body } = await this.client.request({ method: 'GET', url: `${this.url}/readyz`, ...limits });
    if (status === 200) return `ready at ${this.url}`;
    throw new CommandError(`${this.url}/readyz answers ${status}: ${body.toString().slice(0, 300)}`);
  }

  /** Opens an MCP session, or what replaced it, and lists the tools. */
  async initialize(token: string): Promise<string> {
    const mcp = new Client(
      { name: 'rialto-doctor', version: VERSION.version },
      { versionNegotiation: { mode: 'auto' } },
    );
    const transport = new StreamableHTTPClientTransport(new URL(`${this.url}/mcp`), {
      fetch: this.client.asFetch(limits),
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    });
    try {
      await mcp.connect(transport);
      const { tools } = await mcp.listTools();
      return `protocol ${mcp.getNegotiatedProtocolVersion() ?? 'unknown'}, ${tools.length} tools`;
    } finally {
      await mcp.close();
    }
  }

  close(): Promise<void> {
    return this.client.close();
  }
}
