import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { UrlQueries } from '../../platform/secrets/url-queries.js';
import { Vault, type SealedAt } from '../../platform/secrets/vault.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import type { ChangeServer, Program, RegisterServer, UpstreamTransport } from '../upstream.types.js';

/** Where a server is, and what only it may see. */
export type Endpoint =
  | { readonly transport: WebTransport; readonly url: string; readonly headers: NamedValues }
  | {
      readonly transport: 'stdio';
      readonly program: Program;
      readonly env: NamedValues;
      readonly isDeclared?: boolean;
    };

type WebTransport = Exclude<UpstreamTransport, 'stdio'>;
type NamedValues = Readonly<Record<string, string>>;
type Owner = Pick<McpServerEntity, 'id' | 'orgId'>;
/** The columns that say where a server is. */
export type Place = Pick<McpServerEntity, 'transport' | 'url' | 'program' | 'secrets'>;
type Kept = Owner & Place & Pick<McpServerEntity, 'source'>;

/** By what one caller is known to a server. */
export interface UserCredential {
  readonly id: string;
  /** Kind and id of a principal. */
  readonly caller: string;
  readonly origin: string;
  readonly sealed: string;
}

/** Among the sealed words of a server, beside its headers; no header is called so. */
const queryWord = ':query';

/** Places of MCP servers: what is secret of them is sealed on the way in, and opened when a line is opened. */
@Injectable()
export class SealedEndpoints {
  private readonly queries: UrlQueries;

  constructor(private readonly vault: Vault) {
    this.queries = new UrlQueries(vault);
  }

  columnsOf(owner: Owner, endpoint: Endpoint): Place & Pick<McpServerEntity, 'headerNames' | 'envNames'> {
    if (endpoint.transport === 'stdio') {
      const { transport, program, env } = endpoint;
      return { transport, url: null, program, secrets: this.seal(owner, env), headerNames: [], envNames: namesOf(env) };
    }
    const { transport, headers } = endpoint;
    const { url, query } = this.queries.hide(endpoint.url);
    const secrets = this.seal(owner, query === undefined ? headers : { ...headers, [queryWord]: query });
    return { transport, url, program: null, secrets, headerNames: namesOf(headers), envNames: [] };
  }

  /** @param user whose headers go with it: they take the place of those of the same name. */
  endpointOf(server: Kept, user?: UserCredential): Endpoint {
    const endpoint = this.sharedEndpointOf(server);
    return user ? withHeaders(endpoint, this.openValues(user.sealed, placeOfUser(server, user))) : endpoint;
  }

  /** The headers of a user, sealed: they open for that user, server and origin alone. */
  sealUser(server: Owner, user: Omit<UserCredential, 'id' | 'sealed'>, headers: NamedValues): string {
    return this.vault.seal(JSON.stringify(headers), placeOfUser(server, user));
  }

  private sharedEndpointOf(server: Kept): Endpoint {
    const { transport, url, program, secrets, source } = server;
    const words = secrets === null ? {} : this.openValues(secrets, placeOf(server));
    if (transport === 'stdio') return { transport, program: program!, env: words, isDeclared: source === 'config' };
    const { [queryWord]: query, ...headers } = words;
    return { transport, url: UrlQueries.whole({ url: url!, query }), headers };
  }

  private openValues(sealed: string, place: SealedAt): NamedValues {
    return JSON.parse(this.vault.open(sealed, place).reveal()) as NamedValues;
  }

  private seal(owner: Owner, words: NamedValues): string | null {
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
  if (known.transport === 'stdio') refuseUsers(given);
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

/** A program runs for all its callers. */
function refuseUsers(given: ChangeServer): void {
  const field = (['userCredentials', 'userHeaders'] as const).find((name) => given[name] !== undefined);
  if (field === undefined) return;
  throw new RialtoError('invalid_params', { violations: [{ field, description: 'is not for a program' }] });
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

function namesOf(words: NamedValues): string[] {
  return Object.keys(words);
}

function placeOf({ id, orgId }: Owner): SealedAt {
  return { table: 'mcp_servers', row: id, org: orgId };
}

function placeOfUser({ id, orgId }: Owner, { caller, origin }: Pick<UserCredential, 'caller' | 'origin'>): SealedAt {
  return { table: 'mcp_user_credentials', row: `${id} ${origin} ${caller}`, org: orgId };
}

/** With the headers of a user in place of those of the same name, however that is written; a program has none. */
export function withHeaders(endpoint: Endpoint, headers: NamedValues): Endpoint {
  if (endpoint.transport === 'stdio') return endpoint;
  const own = new Set(namesOf(headers).map((name) => name.toLowerCase()));
  const shared = Object.entries(endpoint.headers).filter(([name]) => !own.has(name.toLowerCase()));
  return { ...endpoint, headers: { ...Object.fromEntries(shared), ...headers } };
}
