import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher } from 'undici';
import { RialtoError } from '../../../kernel/errors.js';
import { mayConnect, targetOf, type Target, type UrlRefusal, type UrlRules } from './address.js';
import type { Exchange } from './safe-exchange.js';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<ResolvedAddress[]>;

/** Where bytes may go: the URL rules, and how names become addresses (the system's resolver unless a test says otherwise). */
export interface OutboundPolicy extends UrlRules {
  readonly resolve?: Resolve;
  /** Told of each request with a purpose that went out and brought no answer: nobody knows whether it was taken (I5). */
  readonly unanswered?: (purpose: string) => void;
}

const resolveLimitMs = 3_000;
const connectLimitMs = 10_000;
/** How long one address of several may take before the next is tried. */
const addressLimitMs = 1_000;

const systemResolve: Resolve = async (host) =>
  (await lookup(host, { all: true, order: 'verbatim' })).map(({ address, family }) => ({
    address,
    family: family === 6 ? 6 : 4,
  }));

const hint =
  'only public addresses may be called; whoever runs this opens others (RIALTO_OUTBOUND_ALLOW, or `allow` of the client)';

/** What the text of a URL alone tells, and its sender may be told. */
const mistakes: Partial<Record<string, string>> = {
  malformed: 'write the whole URL, such as https://agent.example.com/path',
  scheme: 'only http and https URLs may be called',
  userinfo: 'a URL with a user name or password is not called',
} satisfies Partial<Record<UrlRefusal, string>>;

/** The one public refusal; why stays in `cause`, so no answer tells an address or the state of a port (abuse 23). */
export function urlNotAllowed(reason: string): RialtoError {
  return new RialtoError('url_not_allowed', { hint: mistakes[reason] ?? hint, cause: new Error(reason) });
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`name resolution took more than ${limitMs} ms`)), limitMs).unref();
  });
  return Promise.race([work, limit]).finally(() => clearTimeout(timer));
}

/** Resolves once and refuses when ANY address is not allowed: a mixed answer is an attack or a mistake (abuse 21). */
async function vettedAddresses(target: Target, policy: OutboundPolicy): Promise<ResolvedAddress[]> {
  const resolve = policy.resolve ?? systemResolve;
  const addresses = await within(resolveLimitMs, resolve(target.host));
  if (addresses.length === 0) throw new Error(`no address for ${target.host}`);
  const refused = addresses.find(({ address }) => !mayConnect(target, address, policy.allow));
  if (refused !== undefined) throw urlNotAllowed(`${target.host} resolves to ${refused.address}`);
  return addresses;
}

/** A resolver for `net.connect` that hands out vetted addresses alone, so what was checked is what is connected. */
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

/** Starts a connection; the socket, still connecting, is returned so that it can be given up. */
type Connector = (...args: Parameters<buildConnector.connector>) => Socket | undefined;

/**
 * Opens the sockets of one target for undici: literals are judged here (undici resolves nothing for them), names by the
 * pinned lookup, and the far end of every socket once more before it is used. Host and SNI stay those of the name.
 * Fails closed. Section 4.6 of the threat model: AN-39, RE-28, abuse 20 and 21.
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
      done(urlNotAllowed(`${options.hostname} is not public`), null);
      return undefined;
    }
    const opening: unknown = open({ ...options, servername }, (error, socket) => {
      if (error !== null) return done(error, null);
      const { remoteAddress } = socket;
      if (remoteAddress !== undefined && mayConnect(target, remoteAddress, policy.allow)) return done(null, socket);
      socket.destroy();
      done(
        remoteAddress === undefined ? new Error('closed at once') : urlNotAllowed(`connected to ${remoteAddress}`),
        null,
      );
    });
    return opening as Socket;
  };
}

const maxSockets = 512;
const clientOptions: Client.Options = {
  pipelining: 1,
  maxHeaderSize: 16_384,
  // The total deadline replaces both: neither bounds a body that drips (abuse 25).
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveMaxTimeout: 60_000,
};

/**
 * The keep-alive connections of one origin, one exchange on each at a time, the last used first. A connection whose
 * exchange failed is thrown away. (undici's own Pool opens a second socket for a caller that sends again at once.)
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

  /** Sends on a free connection, a new one, or the next that gets free. */
  dispatch(options: Dispatcher.DispatchOptions, exchange: Exchange): void {
    const client = this.free.pop() ?? this.open();
    if (client === undefined) this.waiting.push([options, exchange]);
    else this.run(client, options, exchange);
  }

  async close(): Promise<void> {
    for (const [, exchange] of this.waiting.splice(0)) exchange.fail(new RialtoError('unavailable'));
    await Promise.all([...this.clients.keys()].map((client) => this.discard(client)));
  }

  private open(): Client | undefined {
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

  private run(client: Client, options: Dispatcher.DispatchOptions, exchange: Exchange): void {
    exchange.released = (reusable) => this.release(client, reusable);
    client.dispatch(options, exchange);
  }

  private release(client: Client, reusable: boolean): void {
    if (reusable) this.free.push(client);
    else void this.discard(client);
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      if (!next[1].over) return this.dispatch(...next);
    }
  }

  /** Ends a connection, also one that is still being made: undici would let that go on. */
  private async discard(client: Client): Promise<void> {
    const socket = this.clients.get(client);
    this.clients.delete(client);
    await client.destroy();
    socket?.destroy();
  }
}
