import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import { RialtoError } from '../../../kernel/errors.js';
import { checkUrl, mayConnect, parseUrl, targetOf, type Target, type UrlRefusal, type UrlRules } from './address.js';
import type { Exchange } from './safe-exchange.js';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Returns all addresses of a name. */
export type Resolve = (host: string) => Promise<ResolvedAddress[]>;

/** Where bytes may be sent: the URL rules, and how names are resolved (by default with the system's resolver). */
export interface OutboundPolicy extends UrlRules {
  readonly resolve?: Resolve;
  /** Name of the setting or option that fills `allow`, for hints. Default: the setting of a gateway. */
  readonly allowedBy?: string;
  /**
   * Called for each request with a purpose that was sent and got no answer: it is unknown whether it was received
   * (I5).
   */
  readonly unanswered?: (purpose: string) => void;
}

const resolveLimitMs = 3_000;
const connectLimitMs = 10_000;
/** How long the attempt with one of several addresses may take before the next is tried. */
const addressLimitMs = 1_000;

const systemResolve: Resolve = async (host) =>
  (await lookup(host, { all: true, order: 'verbatim' })).map(({ address, family }) => ({
    address,
    family: family === 6 ? 6 : 4,
  }));

/** Hints for mistakes that are visible in the URL itself, so the caller may see them. */
const mistakes: Partial<Record<string, string>> = {
  malformed: 'write the complete URL, such as https://agent.example.com/path',
  scheme: 'only http and https URLs may be called',
  userinfo: 'remove the user name and password from the URL',
} satisfies Partial<Record<UrlRefusal, string>>;

/**
 * The only public refusal. The reason stays in `cause`, so no answer reveals an address or the state of a port (abuse
 * 23). The host is named as the URL has it; a host that the caller did not give is left out.
 */
export function urlNotAllowed(reason: string, policy: OutboundPolicy, host = ''): RialtoError {
  const { allowedBy = 'the setting RIALTO_OUTBOUND_ALLOW' } = policy;
  const callable = reason === 'https_required' ? 'https URLs' : 'public addresses';
  return new RialtoError('url_not_allowed', {
    ...(host !== '' && { message: `the host "${host}" may not be called` }),
    hint: mistakes[reason] ?? `only ${callable} may be called; ${allowedBy} allows others`,
    cause: new Error(reason),
  });
}

/** Throws `url_not_allowed` for a URL that breaks the policy by its text. */
export function requireAllowed(url: string | URL, policy: OutboundPolicy): void {
  const refusal = checkUrl(url, policy);
  if (refusal !== undefined) throw urlNotAllowed(refusal, policy, parseUrl(String(url))?.hostname);
}

async function resolveWithin<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`name resolution took more than ${limitMs} ms`)), limitMs).unref();
  });
  return Promise.race([work, limit]).finally(() => clearTimeout(timer));
}

/**
 * Resolves once, and refuses when ANY address is not allowed: a mixed answer is an attack or a mistake (abuse 21).
 */
async function vettedAddresses(target: Target, policy: OutboundPolicy): Promise<ResolvedAddress[]> {
  const resolve = policy.resolve ?? systemResolve;
  const addresses = await resolveWithin(resolveLimitMs, resolve(target.host));
  if (addresses.length === 0) throw new Error(`no address for ${target.host}`);
  const refused = addresses.find(({ address }) => !mayConnect(target, address, policy.allow));
  if (refused !== undefined) throw urlNotAllowed(`${target.host} resolves to ${refused.address}`, policy, target.host);
  return addresses;
}

/**
 * A resolver for `net.connect` that returns only checked addresses, so that the connection uses the address that was
 * checked.
 */
function pinned(target: Target, policy: OutboundPolicy): LookupFunction {
  return (_host, options, done) => {
    vettedAddresses(target, policy).then(
      (addresses) => {
        if (options.all === true) done(null, addresses);
        else done(null, addresses[0]!.address, addresses[0]!.family);
      },
      (error: unknown) => done(error as NodeJS.ErrnoException, []),
    );
  };
}

/** Starts a connection. Returns the connecting socket, so that the caller can cancel it. */
type Connector = (...args: Parameters<buildConnector.connector>) => Socket | undefined;

/**
 * Opens the sockets of one target for undici. Literal addresses are checked here (undici does not resolve them),
 * names by the pinned lookup, and the remote address of every socket once more before it is used. Host and SNI keep
 * the name. Fails closed. Section 4.6 of the threat model: AN-39, RE-28, abuse 20 and 21.
 */
export function safeConnector(target: Target, policy: OutboundPolicy): Connector {
  const open = buildConnector({
    timeout: connectLimitMs,
    lookup: pinned(target, policy),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: addressLimitMs,
    allowH2: false,
  });
  // A name in SNI has no trailing dot (RFC 6066 section 3).
  const servername = isIP(target.host) === 0 ? target.host : undefined;
  return (options, done) => {
    if (isIP(options.hostname) !== 0 && !mayConnect(target, options.hostname, policy.allow)) {
      done(urlNotAllowed(`${options.hostname} is not public`, policy, target.host), null);
      return undefined;
    }
    const opening: unknown = open({ ...options, servername }, (error, socket) => {
      if (error !== null) return done(error, null);
      const { remoteAddress } = socket;
      if (remoteAddress !== undefined && mayConnect(target, remoteAddress, policy.allow)) return done(null, socket);
      socket.destroy();
      const isGone = remoteAddress === undefined;
      const reason = `connected to ${remoteAddress}`;
      done(isGone ? new Error('closed at once') : urlNotAllowed(reason, policy, target.host), null);
    });
    return opening as Socket;
  };
}

const maxSockets = 512;
const clientOptions: Client.Options = {
  pipelining: 1,
  maxHeaderSize: 16_384,
  // The total deadline replaces both: neither limits a body that arrives slowly, byte by byte (abuse 25).
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveMaxTimeout: 60_000,
};

/**
 * The keep-alive connections of one origin: one exchange at a time on each, the last used connection first. A
 * connection with a failed exchange is closed. (undici's Pool opens a second socket for a caller that sends again at
 * once.)
 */
export class OriginConnections {
  private readonly clients = new Map<Client, Socket | undefined>();
  private readonly free: Client[] = [];
  private readonly waiting: [Dispatcher.DispatchOptions, Exchange][] = [];
  private readonly connect: Connector;

  constructor(
    private readonly url: URL,
    policy: OutboundPolicy,
  ) {
    this.connect = safeConnector(targetOf(url), policy);
  }

  get idle(): boolean {
    return this.clients.size === this.free.length;
  }

  /** Sends on a free connection, on a new one, or on the next one that becomes free. */
  dispatch(options: Dispatcher.DispatchOptions, exchange: Exchange): void {
    const client = this.free.pop() ?? this.openClient();
    if (client === undefined) this.waiting.push([options, exchange]);
    else this.sendExchange(client, options, exchange);
  }

  async close(): Promise<void> {
    for (const [, exchange] of this.waiting.splice(0)) exchange.fail(new RialtoError('unavailable'));
    await Promise.all([...this.clients.keys()].map((client) => this.discard(client)));
  }

  private openClient(): Client | undefined {
    if (this.clients.size >= maxSockets) return undefined;
    const client: Client = new Client(this.url.origin, {
      ...clientOptions,
      connect: (options, done) => {
        const socket = this.connect(options, done);
        if (this.clients.has(client)) this.clients.set(client, socket);
      },
    });
    this.clients.set(client, undefined);
    return client;
  }

  private sendExchange(client: Client, options: Dispatcher.DispatchOptions, exchange: Exchange): void {
    exchange.released = (reusable) => this.releaseClient(client, reusable);
    client.dispatch(options, exchange);
  }

  private releaseClient(client: Client, reusable: boolean): void {
    if (reusable) this.free.push(client);
    else void this.discard(client);
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      if (!next[1].over) return this.dispatch(...next);
    }
  }

  /** Ends a connection, also one that is still connecting, which undici would not stop. */
  private async discard(client: Client): Promise<void> {
    const socket = this.clients.get(client);
    this.clients.delete(client);
    await client.destroy();
    socket?.destroy();
  }
}
