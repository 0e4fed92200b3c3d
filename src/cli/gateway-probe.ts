import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { parseExact } from '../protocol/exact-integers.js';
import { parseAllowList } from '../platform/http/outbound/address.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { VERSION } from '../platform/telemetry/version.js';
import { CommandError, Skipped } from './io.js';

const limits = { deadlineMs: 5_000, maxBytes: 1_048_576 };

/** Sends requests to a running gateway as its users do. */
export class GatewayProbe {
  private readonly client: SafeFetch;

  /** @param url base address, without a trailing slash. */
  constructor(readonly url: string) {
    this.client = new SafeFetch({ allow: parseAllowList(new URL(url).origin), httpsOnly: false });
  }

  /** True when a gateway, and not another server, listens at the address. */
  async answers(): Promise<boolean> {
    try {
      const { body } = await this.client.request({ method: 'GET', url: `${this.url}/version`, ...limits });
      return (JSON.parse(body.toString()) as { name?: unknown }).name === VERSION.name;
    } catch {
      return false;
    }
  }

  /** Returns a text when the gateway is ready. Throws with the checks that are down. */
  async readiness(): Promise<string> {
    const { status, body } = await this.client.request({ method: 'GET', url: `${this.url}/readyz`, ...limits });
    if (status === 200) return `ready at ${this.url}`;
    throw new CommandError(`${this.url}/readyz answers ${status}: ${body.toString().slice(0, 300)}`);
  }

  /** Returns the name on the card that unauthenticated callers get. */
  async cardName(): Promise<string> {
    const url = `${this.url}/.well-known/agent-card.json`;
    const { status, body } = await this.client.request({ method: 'GET', url, ...limits });
    if (status === 404) throw new Skipped('the org has no default agent: set it with PATCH /api/orgs/{slug}');
    const { name } = (status === 200 ? JSON.parse(body.toString()) : {}) as { name?: unknown };
    if (typeof name !== 'string') throw new CommandError(`${url} answers ${status} without an agent card`);
    return `"${name}"`;
  }

  /** Returns the body of an API answer. Throws `Skipped` with `refusal` when the token lacks the permission. */
  async api<Body>(
    method: string,
    path: string,
    token: string,
    body?: object,
    refusal = 'the token is not that of an admin',
  ): Promise<Body> {
    const { status, body: bytes } = await this.client.request({
      method,
      url: `${this.url}${path}`,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: body && JSON.stringify(body),
      ...limits,
      deadlineMs: 15_000,
    });
    const text = bytes.toString();
    if (status === 403) throw new Skipped(refusal);
    if (status >= 300) throw new CommandError(`${method} ${path} answers ${status}: ${codeOf(text)}`);
    return (text === '' ? undefined : parseExact(text)) as Body;
  }

  /** Opens an MCP session (or the equivalent of a newer revision) and lists the tools. */
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

/** Returns code and detail of a problem document; for any other text its first 100 characters. */
function codeOf(text: string): string {
  try {
    const { code, detail } = JSON.parse(text) as { code?: string; detail?: string };
    return [code, detail].filter(Boolean).join(', ');
  } catch {
    return text.slice(0, 100);
  }
}
