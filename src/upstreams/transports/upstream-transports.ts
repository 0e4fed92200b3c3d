import { setTimeout as sleep } from 'node:timers/promises';
import type { FetchLike, Transport } from '@modelcontextprotocol/client';
import { Inject, Injectable } from '@nestjs/common';
import { restored } from '../../protocol/exact-integers.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { credentialsIn, credentialsOf, SaidBack } from '../../platform/secrets/said-back.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { maxAnswerBytes } from './answer-reader.js';
import { AnswerStreams } from './answer-streams.js';
import { hearing, shieldingFetch } from './exact-answers.js';
import { ProgramGuard } from '../programs/program-guard.js';
import { ProgramCaches, type ProgramOwner } from '../programs/program-caches.js';
import { withHints } from './raw-results.js';
import { StdioTransport } from './stdio.transport.js';
import { StdioCatalogue } from '../programs/stdio-catalogue.js';
import type { Endpoint } from '../storage/sealed-endpoints.js';
import { WebSocketTransport } from './websocket.transport.js';

type WebEndpoint = Exclude<Endpoint, { transport: 'stdio' }>;

const maxAnswer = { deadlineMs: 3_600_000, maxBytes: maxAnswerBytes };
/** How long calls wait for the standing stream: a server that has none says so at once. */
const standingMs = 1_000;
/** A standing stream carries notices; it is opened again when it ends. */
const maxStream = { deadlineMs: 86_400_000, maxBytes: 268_435_456 };
const reconnectionOptions = {
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 60_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 1_000_000,
};

/** Lines to MCP servers: over the one way out of the gateway, or to a program of this machine. */
@Injectable()
export class UpstreamTransports {
  constructor(
    private readonly safeFetch: SafeFetch,
    private readonly programs: StdioCatalogue,
    private readonly guard: ProgramGuard,
    private readonly caches: ProgramCaches,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Throws `url_not_allowed` for an address that nothing may be sent to, `unprocessable` for a program that may not be started. */
  check(endpoint: Endpoint): void {
    if (endpoint.transport === 'stdio') this.programs.commandOf(endpoint);
    else this.safeFetch.check(endpoint.url);
  }

  /** Throws as `check` does: what may be called or started may change. */
  async open(endpoint: Endpoint, owner: ProgramOwner): Promise<Transport> {
    const saidBack = new SaidBack(
      endpoint.transport === 'stdio'
        ? credentialsIn(endpoint.env)
        : [...credentialsIn(endpoint.headers), ...credentialsOf(endpoint.url)],
    );
    return heardThrough(await this.line(endpoint, owner, saidBack), saidBack);
  }

  private async line(endpoint: Endpoint, owner: ProgramOwner, saidBack: SaidBack): Promise<Transport> {
    if (endpoint.transport === 'websocket') return this.webSocket(endpoint);
    if (endpoint.transport !== 'stdio') return this.web(endpoint);
    const note = (line: string): void =>
      this.log.info({ server: owner.serverId, line: saidBack.clean(line) }, 'an MCP server says');
    const command = { ...this.programs.commandOf(endpoint), cache: this.caches.folderOf(owner) };
    this.guard.handOver(command.cache);
    return new StdioTransport(command, this.guard, note);
  }

  /** Of a server that is gone: what its program downloaded goes too. */
  forget(owner: ProgramOwner): Promise<void> {
    return this.caches.drop(owner);
  }

  private webSocket({ url, headers }: WebEndpoint): Transport {
    const options = { headers, subprotocol: 'mcp', maxBytes: maxAnswer.maxBytes };
    return new WebSocketTransport(() => this.safeFetch.socket(url, options));
  }

  private async web({ transport, url, headers }: WebEndpoint): Promise<Transport> {
    const sdk = await import('@modelcontextprotocol/client');
    const at = new URL(url);
    const out = shieldingFetch(this.wayOut(at.origin, headers));
    if (transport === 'sse') {
      const line = new sdk.SSEClientTransport(at, { fetch: out });
      // Its session ends with its stream, and with that whatever was asked.
      line.onerror = (error) => void (error instanceof sdk.SseError && line.close());
      return line;
    }
    const answers = new AnswerStreams();
    const options = { fetch: answers.wayOut(behindStanding(out)), reconnectionOptions };
    const line = new sdk.StreamableHTTPClientTransport(at, options);
    answers.watch(line);
    return line;
  }

  /** Headers go to the origin they were given for alone (abuse case 18). */
  private wayOut(origin: string, given: WebEndpoint['headers']): FetchLike {
    const headers = (to: URL): Record<string, string> => (to.origin === origin ? { ...given } : {});
    const standing = this.safeFetch.asFetch({ ...maxStream, headers });
    const asking = this.safeFetch.asFetch({ ...maxAnswer, headers });
    return (input, init) => (init?.method === 'POST' ? asking : standing)(input, init);
  }
}

/**
 * Each message is heard with the integers that were sent (see shieldingFetch), without the credentials of the connection, and with what the SDK
 * insists on.
 */
function heardThrough(line: Transport, saidBack: SaidBack): Transport {
  if (!saidBack.isEmpty) {
    const send = line.send.bind(line);
    line.send = (...told) => send(...told).catch((thrown: unknown) => Promise.reject(saidBack.thrown(thrown) as Error));
  }
  return hearing(line, (message) => withHints(saidBack.clean(restored(message))));
}

/**
 * Many servers ask on the standing stream of their session what they want to know, and what they ask before it is there is lost: calls wait for
 * it, a little.
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
