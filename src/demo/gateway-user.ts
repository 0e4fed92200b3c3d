import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { parseAllowList } from '../platform/http/outbound/address.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';

const limits = { deadlineMs: 15_000, maxBytes: 4_194_304 };

/** A call that the gateway refused, as the MCP client received it. */
export interface Refusal {
  readonly code: number;
  readonly message: string;
}

/** A user with a token: calls the management API and, with the official client, MCP tools. */
export class GatewayUser {
  private readonly http = new SafeFetch({ allow: parseAllowList('127.0.0.0/8'), httpsOnly: false });
  private readonly mcp = new Client(
    { name: 'rialto-demo', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' } },
  );
  private readonly headers: Record<string, string>;

  constructor(
    private readonly url: string,
    token: string,
  ) {
    this.headers = { authorization: `Bearer ${token}` };
  }

  /** Returns the body of an answer. Throws with the gateway's text when the call failed. */
  async api<Body>(method: string, path: string, body?: object): Promise<Body> {
    const answer = await this.http.request({
      method,
      url: `${this.url}${path}`,
      headers: { ...this.headers, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
      ...limits,
    });
    const text = answer.body.toString();
    if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text) as Body;
  }

  /** Connects to the MCP door; returns the negotiated protocol version. */
  async connect(): Promise<string> {
    const transport = new StreamableHTTPClientTransport(new URL(`${this.url}/mcp`), {
      fetch: this.http.asFetch(limits),
      requestInit: { headers: this.headers },
    });
    await this.mcp.connect(transport);
    return this.mcp.getNegotiatedProtocolVersion() ?? 'unknown';
  }

  async tools(): Promise<{ name: string; description?: string }[]> {
    return (await this.mcp.listTools()).tools;
  }

  /** Returns the structured result of a tool as JSON. Throws when the tool reports an error. */
  async call(name: string, args: Record<string, unknown>): Promise<string> {
    const { content, structuredContent, isError } = await this.mcp.callTool({ name, arguments: args });
    const [first] = content;
    const text = first?.type === 'text' ? first.text : '';
    if (isError === true) throw new Error(`${name} failed: ${text}`);
    return structuredContent === undefined ? text : JSON.stringify(structuredContent);
  }

  /** Returns the refusal of a call that must not succeed. */
  async refused(name: string, args: Record<string, unknown>): Promise<Refusal> {
    try {
      await this.mcp.callTool({ name, arguments: args });
    } catch (error) {
      if (error instanceof ProtocolError) return { code: error.code, message: error.message };
      throw error;
    }
    throw new Error(`${name} was answered although a policy forbids it`);
  }

  async close(): Promise<void> {
    await this.mcp.close();
    await this.http.close();
  }
}
