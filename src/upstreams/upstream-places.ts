import { Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { Vault } from '../platform/secrets/vault.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import type { ChangeServer, Program, RegisterServer, UpstreamTransport } from './upstream.types.js';

/** Where a server is, and what only it may see. */
export type Endpoint =
  | { readonly transport: WebTransport; readonly url: string; readonly headers: Words }
  | { readonly transport: 'stdio'; readonly program: Program; readonly env: Words; readonly isDeclared?: boolean };

type WebTransport = Exclude<UpstreamTransport, 'stdio'>;
type Words = Readonly<Record<string, string>>;
type Owner = Pick<McpServerEntity, 'id' | 'orgId'>;
/** The columns that say where a server is. */
export type Place = Pick<McpServerEntity, 'transport' | 'url' | 'program' | 'secrets'>;
type Kept = Owner & Place & Pick<McpServerEntity, 'source'>;

/** Places of MCP servers: what is secret of them is sealed on the way in, and opened when a line is opened. */
@Injectable()
export class UpstreamPlaces {
  constructor(private readonly vault: Vault) {}

  columnsOf(owner: Owner, endpoint: Endpoint): Place & Pick<McpServerEntity, 'headerNames' | 'envNames'> {
    if (endpoint.transport === 'stdio') {
      const { transport, program, env } = endpoint;
      return { transport, url: null, program, secrets: this.seal(owner, env), headerNames: [], envNames: namesOf(env) };
    }
    const { transport, url, headers } = endpoint;
    const secrets = this.seal(owner, headers);
    return { transport, url, program: null, secrets, headerNames: namesOf(headers), envNames: [] };
  }

  endpointOf(server: Kept): Endpoint {
    const { transport, url, program, secrets, source } = server;
    const words = secrets === null ? {} : (JSON.parse(this.vault.open(secrets, placeOf(server)).reveal()) as Words);
    return transport === 'stdio'
      ? { transport, program: program!, env: words, isDeclared: source === 'config' }
      : { transport, url: url!, headers: words };
  }

  private seal(owner: Owner, words: Words): string | null {
    return namesOf(words).length === 0 ? null : this.vault.seal(JSON.stringify(words), placeOf(owner));
  }
}

/** Of a registration; its schema has seen that it names an address or a program. */
export function endpointFrom({
  command,
  args = [],
  cwd,
  env = {},
  url,
  headers = {},
  transport,
}: RegisterServer): Endpoint {
  if (command !== undefined)
    return { transport: 'stdio', program: { command, args, ...(cwd !== undefined && { cwd }) }, env };
  return { transport: webTransport(url!, transport as WebTransport | undefined), url: url!, headers };
}

/** What is given instead of what was. Throws `invalid_params` for an address in place of a program, or a program in place of an address. */
export function endpointChanged(known: Endpoint, given: ChangeServer): Endpoint {
  const { command, args, cwd, env, url, headers, transport } = given;
  const words = known.transport === 'stdio' ? { url, headers } : { command, args, cwd, env };
  const field = Object.entries(words).find(([, value]) => value !== undefined)?.[0];
  const isOther = transport !== undefined && (transport === 'stdio') !== (known.transport === 'stdio');
  if (field !== undefined || isOther) {
    const description = 'makes it another server: register that one';
    throw new RialtoError('invalid_params', { violations: [{ field: field ?? 'transport', description }] });
  }
  if (known.transport === 'stdio') {
    const program = { ...known.program, ...defined({ command, args, cwd }) };
    return { ...known, program, env: env ?? known.env };
  }
  const at = url ?? known.url;
  const wished = (transport as WebTransport | undefined) ?? (url === undefined ? known.transport : undefined);
  return {
    transport: webTransport(at, wished ?? keptBy(known.transport, at)),
    url: at,
    headers: headers ?? known.headers,
  };
}

/** A move within HTTP, or within WebSocket, stays what it is. */
function keptBy(transport: WebTransport, url: string): WebTransport | undefined {
  return (transport === 'websocket') === isWebSocket(url) ? transport : undefined;
}

/** Throws `invalid_params` for a transport that the URL is not of. */
function webTransport(url: string, wished: WebTransport | undefined): WebTransport {
  const transport = wished ?? (isWebSocket(url) ? 'websocket' : 'streamable-http');
  if ((transport === 'websocket') === isWebSocket(url)) return transport;
  const description = transport === 'websocket' ? 'begins with ws:// or wss:// then' : 'is of a WebSocket';
  throw new RialtoError('invalid_params', { violations: [{ field: 'url', description }] });
}

function isWebSocket(url: string): boolean {
  return /^wss?:/i.test(url);
}

function defined<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Given>;
}

function namesOf(words: Words): string[] {
  return Object.keys(words);
}

function placeOf({ id, orgId }: Owner) {
  return { table: 'mcp_servers', row: id, org: orgId };
}
