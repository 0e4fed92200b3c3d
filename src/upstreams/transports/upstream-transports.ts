import { setTimeout as sleep } from 'node:timers/promises';
import type { FetchLike, Transport } from '@modelcontextprotocol/client';
import { Inject, Injectable } from '@nestjs/common';
import { restored } from '../../protocol/exact-integers.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { credentialsIn, credentialsOf, CredentialRemover } from '../../platform/secrets/credential-remover.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { maxAnswerBytes } from './answer-reader.js';
import { AnswerStreams } from './answer-streams.js';
import { hearing, shieldingFetch } from './exact-answers.js';
import { ProgramGuard } from '../programs/program-guard.js';
import { ProgramCaches, type ProgramOwner } from '../programs/program-caches.js';
import { LongMessages } from './long-messages.js';
import { withHints } from './raw-results.js';
import { StdioTransport } from './stdio.transport.js';
import { StdioCatalogue } from '../programs/stdio-catalogue.js';
import type { Endpoint } from '../storage/sealed-endpoints.js';
import { WebSocketTransport } from './websocket.transport.js';

type WebEndpoint = Exclude<Endpoint, { transport: 'stdio' }>;

const maxAnswer = { deadlineMs: 3_600_000, maxBytes: maxAnswerBytes };
/** Maximum time in milliseconds that calls wait for the standing stream; a server without one refuses it at once. */
const standingMs = 1_000;
/** Limits of a standing stream. It carries notifications and is opened again when it ends. */
const maxStream = { deadlineMs: 86_400_000, maxBytes: 268_435_456 };
const reconnectionOptions = {
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 60_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 1_000_000,
};

/**
 * Opens connections to MCP servers: through the outbound HTTP client of the gateway, or to a program on this machine.
 */
@Injectable()
export class UpstreamTransports {
  constructor(
    private readonly safeFetch: SafeFetch,
    private readonly programs: StdioCatalogue,
    private readonly guard: ProgramGuard,
    private readonly caches: ProgramCaches,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Throws `url_not_allowed` for an address that the gateway may not call, and `unprocessable` for a program that it
   * may not start.
   */
  checkEndpoint(endpoint: Endpoint): void {
    if (endpoint.transport === 'stdio') this.programs.commandOf(endpoint);
    else this.safeFetch.checkUrl(endpoint.url);
  }

  /** Opens a connection. Throws as `checkEndpoint` does: the allowed addresses and programs may have changed. */
  async openTransport(endpoint: Endpoint, owner: ProgramOwner): Promise<Transport> {
    const remover = new CredentialRemover(
      endpoint.transport === 'stdio'
        ? credentialsIn(endpoint.env)
        : [...credentialsIn(endpoint.headers), ...credentialsOf(endpoint.url)],
    );
    const long = new LongMessages(remover);
    const connection = await this.newTransport(endpoint, owner, remover, long);
    const isReadHere = endpoint.transport === 'stdio' || endpoint.transport === 'websocket';
    return cleaned(connection, remover, isReadHere ? undefined : long);
  }

  private async newTransport(
    endpoint: Endpoint,
    owner: ProgramOwner,
    remover: CredentialRemover,
    long: LongMessages,
  ): Promise<Transport> {
    if (endpoint.transport === 'websocket') return this.webSocket(endpoint, remover);
    if (endpoint.transport !== 'stdio') return this.web(endpoint, long);
    const note = (line: string): void =>
      this.log.info({ server: owner.serverId, line: remover.clean(line) }, 'an MCP server says');
    const command = { ...this.programs.commandOf(endpoint), cache: this.caches.folderOf(owner) };
    this.guard.handOver(command.cache);
    return new StdioTransport(command, this.guard, note, remover);
  }

  /** Removes the downloads of the program of a deleted server. */
  removeDownloads(owner: ProgramOwner): Promise<void> {
    return this.caches.removeFolder(owner);
  }

  private webSocket({ url, headers }: WebEndpoint, remover: CredentialRemover): Transport {
    const options = { headers, subprotocol: 'mcp', maxBytes: maxAnswer.maxBytes };
    return new WebSocketTransport(() => this.safeFetch.socket(url, options), remover);
  }

  private async web({ transport, url, headers }: WebEndpoint, long: LongMessages): Promise<Transport> {
    const sdk = await import('@modelcontextprotocol/client');
    const at = new URL(url);
    const out = shieldingFetch(this.wayOut(at.origin, headers), long);
    if (transport === 'sse') {
      const connection = new sdk.SSEClientTransport(at, { fetch: out });
      // An SSE session ends with its stream; pending requests are lost then.
      connection.onerror = (error) => void (error instanceof sdk.SseError && connection.close());
      return connection;
    }
    const answers = new AnswerStreams();
    const options = { fetch: answers.wayOut(behindStanding(out)), reconnectionOptions };
    const connection = new sdk.StreamableHTTPClientTransport(at, options);
    answers.watchConnection(connection);
    return connection;
  }

  /** Sends the headers only to the origin that they were given for (abuse case 18). */
  private wayOut(origin: string, given: WebEndpoint['headers']): FetchLike {
    const headers = (to: URL): Record<string, string> => (to.origin === origin ? { ...given } : {});
    const standing = this.safeFetch.asFetch({ ...maxStream, headers });
    const requests = this.safeFetch.asFetch({ ...maxAnswer, headers });
    return (input, init) => (init?.method === 'POST' ? requests : standing)(input, init);
  }
}

/**
 * Wraps a connection: each received message gets its exact integers back (see shieldingFetch), loses the credentials of
 * the connection, and gets the members that the SDK requires.
 * @param long absent for a connection that reads its messages with an AnswerReader, which cleans them.
 */
function cleaned(connection: Transport, remover: CredentialRemover, long?: LongMessages): Transport {
  if (!remover.isEmpty) {
    const send = connection.send.bind(connection);
    connection.send = (...args) =>
      send(...args).catch((thrown: unknown) => Promise.reject(remover.thrown(thrown) as Error));
  }
  return hearing(connection, (message) => {
    const original = long ? long.original(message) : message;
    // A long message is exact and clean already: that takes too long to be done at once.
    return withHints(long && original === message ? remover.clean(restored(message)) : original);
  });
}

/**
 * Delays calls until the first standing stream of a session is open. Many servers send their own requests on that
 * stream; a request from before it is open is lost. Calls wait at most `standingMs`.
 */
export function behindStanding(out: FetchLike): FetchLike {
  let standing: Promise<unknown> | undefined;
  return async (input, init) => {
    if (init?.method === 'GET' && !standing) {
      const answer = out(input, init);
      standing = Promise.race([answer.catch(() => undefined), sleep(standingMs, undefined, { ref: false })]);
      return answer;
    }
    if (init?.method === 'POST') await standing;
    return out(input, init);
  };
}
