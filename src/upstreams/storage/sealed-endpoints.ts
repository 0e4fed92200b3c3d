import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { UrlQueries } from '../../platform/secrets/url-queries.js';
import { Vault, type SealedAt } from '../../platform/secrets/vault.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import type { ChangeServer, Program, RegisterServer, UpstreamTransport } from '../upstream.types.js';

/** Address of a server with its secrets. */
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
/** Columns that hold the address of a server. */
export type Place = Pick<McpServerEntity, 'transport' | 'url' | 'program' | 'secrets'>;
type StoredServer = Owner & Place & Pick<McpServerEntity, 'source'>;

/** Credential of one caller for a server. */
export interface UserCredential {
  readonly id: string;
  /** Kind and id of a principal. */
  readonly caller: string;
  readonly origin: string;
  readonly sealed: string;
}

/** Key of the URL query among the sealed values of a server; no header can have this name. */
const queryKey = ':query';

/**
 * Seals the secrets of the addresses of MCP servers before they are stored, and opens them when a connection is opened.
 */
@Injectable()
export class SealedEndpoints {
  private readonly queries: UrlQueries;

  constructor(private readonly vault: Vault) {
    this.queries = new UrlQueries(vault);
  }

  columnsOf(owner: Owner, endpoint: Endpoint): Place & Pick<McpServerEntity, 'headerNames' | 'envNames'> {
    if (endpoint.transport === 'stdio') {
      const { transport, program, env } = endpoint;
      return {
        transport,
        url: null,
        program,
        secrets: this.sealValues(owner, env),
        headerNames: [],
        envNames: namesOf(env),
      };
    }
    const { transport, headers } = endpoint;
    const { url, query } = this.queries.hide(endpoint.url);
    const secrets = this.sealValues(owner, query === undefined ? headers : { ...headers, [queryKey]: query });
    return { transport, url, program: null, secrets, headerNames: namesOf(headers), envNames: [] };
  }

  /**
   * Returns the endpoint of a server.
   * @param user the user with headers that replace shared headers of the same name.
   */
  endpointOf(server: StoredServer, user?: UserCredential): Endpoint {
    const endpoint = this.sharedEndpointOf(server);
    return user ? withHeaders(endpoint, this.openValues(user.sealed, placeOfUser(server, user))) : endpoint;
  }

  /** Seals the headers of a user. They can be opened only for that user, server and origin. */
  sealUser(server: Owner, user: Omit<UserCredential, 'id' | 'sealed'>, headers: NamedValues): string {
    return this.vault.seal(JSON.stringify(headers), placeOfUser(server, user));
  }

  private sharedEndpointOf(server: StoredServer): Endpoint {
    const { transport, url, program, secrets, source } = server;
    const values = secrets === null ? {} : this.openValues(secrets, endpointPlace(server));
    if (transport === 'stdio') return { transport, program: program!, env: values, isDeclared: source === 'config' };
    const { [queryKey]: query, ...headers } = values;
    return { transport, url: UrlQueries.whole({ url: url!, query }), headers };
  }

  private openValues(sealed: string, place: SealedAt): NamedValues {
    return JSON.parse(this.vault.open(sealed, place).reveal()) as NamedValues;
  }

  private sealValues(owner: Owner, values: NamedValues): string | null {
    return namesOf(values).length === 0 ? null : this.vault.seal(JSON.stringify(values), endpointPlace(owner));
  }
}

/** Builds the endpoint of a registration; the schema has checked that it holds an address or a program. */
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

/**
 * Applies a change to an endpoint. Throws `invalid_params` for an address in place of a program, or a program in place
 * of an address.
 */
export function endpointChanged(known: Endpoint, given: ChangeServer): Endpoint {
  const { command, args, cwd, env, url, headers, transport } = given;
  if (known.transport === 'stdio') refuseUsers(given);
  const values = known.transport === 'stdio' ? { url, headers } : { command, args, cwd, env };
  const field = Object.entries(values).find(([, value]) => value !== undefined)?.[0];
  const isOther = transport !== undefined && (transport === 'stdio') !== (known.transport === 'stdio');
  if (field !== undefined || isOther) {
    const description = 'would turn an address into a program or back; register another MCP server instead';
    throw new RialtoError('invalid_params', { violations: [{ field: field ?? 'transport', description }] });
  }
  if (known.transport === 'stdio') {
    const program = { ...known.program, ...defined({ command, args, cwd }) };
    return { ...known, program, env: env ?? known.env };
  }
  const at = url ?? known.url;
  const wanted = (transport as WebTransport | undefined) ?? (url === undefined ? known.transport : undefined);
  return {
    transport: webTransport(at, wanted ?? sameKind(known.transport, at)),
    url: at,
    headers: headers ?? known.headers,
  };
}

/** A program runs for all its callers, so it takes no user credentials. */
function refuseUsers(given: ChangeServer): void {
  const field = (['userCredentials', 'userHeaders'] as const).find((name) => given[name] !== undefined);
  if (field === undefined) return;
  throw new RialtoError('invalid_params', { violations: [{ field, description: 'is not for a program' }] });
}

/** Keeps the transport when the address changes within HTTP, or within WebSocket. */
function sameKind(transport: WebTransport, url: string): WebTransport | undefined {
  return (transport === 'websocket') === isWebSocket(url) ? transport : undefined;
}

/** Throws `invalid_params` for a transport that does not fit the URL. */
function webTransport(url: string, wanted: WebTransport | undefined): WebTransport {
  const transport = wanted ?? (isWebSocket(url) ? 'websocket' : 'streamable-http');
  if ((transport === 'websocket') === isWebSocket(url)) return transport;
  const description =
    transport === 'websocket'
      ? 'must begin with ws:// or wss:// for the transport websocket'
      : 'is a WebSocket address, which needs the transport websocket';
  throw new RialtoError('invalid_params', { violations: [{ field: 'url', description }] });
}

function isWebSocket(url: string): boolean {
  return /^wss?:/i.test(url);
}

function defined<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Given>;
}

function namesOf(values: NamedValues): string[] {
  return Object.keys(values);
}

function endpointPlace({ id, orgId }: Owner): SealedAt {
  return { table: 'mcp_servers', row: id, org: orgId };
}

function placeOfUser({ id, orgId }: Owner, { caller, origin }: Pick<UserCredential, 'caller' | 'origin'>): SealedAt {
  return { table: 'mcp_user_credentials', row: `${id} ${origin} ${caller}`, org: orgId };
}

/** Adds the headers of a user; they replace headers of the same name, ignoring case. A program has no headers. */
export function withHeaders(endpoint: Endpoint, headers: NamedValues): Endpoint {
  if (endpoint.transport === 'stdio') return endpoint;
  const replaced = new Set(namesOf(headers).map((name) => name.toLowerCase()));
  const shared = Object.entries(endpoint.headers).filter(([name]) => !replaced.has(name.toLowerCase()));
  return { ...endpoint, headers: { ...Object.fromEntries(shared), ...headers } };
}
