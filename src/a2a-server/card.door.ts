import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { percentDecoded } from '../kernel/text.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../platform/http/http.types.js';
import { sendProblem } from '../platform/http/problem.js';
import { etagOf, sendValidated, type ValidatedBody } from '../platform/http/validated-answer.js';
import { descriptorOf, handleIn } from '../protocol/a2a/card/webfinger.js';
import { SigningKeys, type PublicJwk } from '../platform/secrets/signing-keys.js';
import { AuditKeysService } from '../audit/audit-keys.service.js';
import { ContextService } from '../policy/context.service.js';
import { PublishedService, type BuiltCard, type CardWish } from '../registry/published.service.js';
import type { PublishedAgent } from '../registry/published.types.js';

const methods = ['GET', 'HEAD', 'OPTIONS'];
const cardPaths = ['/.well-known/agent-card.json', '/.well-known/agent.json'];
const publicCache = 'public, max-age=60';
const privateCache = 'private, no-store';
const keysCache = 'public, max-age=300, stale-while-revalidate=3600';

/** CORS headers: pages of any origin may read public cards, also with a bearer token. Cookies are never read. */
const cors = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'ETag, Last-Modified' };
const preflight = {
  ...cors,
  'Access-Control-Allow-Methods': methods.join(', '),
  'Access-Control-Allow-Headers': 'Authorization, A2A-Version, A2A-Extensions, If-None-Match, If-Modified-Since',
  'Access-Control-Max-Age': '86400',
};

/** Request for a card: the caller, the protocol version and the agent that it names. */
interface CardRequest {
  readonly request: DoorRequest;
  readonly response: DoorResponse;
  readonly query: URLSearchParams;
  readonly name: string;
  readonly version: string | undefined;
  /**
   * Org of a valid credential. A caller with an invalid credential counts as anonymous, because cards are public
   * (AN-01).
   */
  readonly reader: OrgRef | undefined;
}

/** Serves cards, the index of agents and the public keys of signatures to everyone, in front of Express. */
@Injectable()
export class CardDoor {
  constructor(
    private readonly published: PublishedService,
    private readonly contexts: ContextService,
    private readonly keys: SigningKeys,
    private readonly auditKeys: AuditKeysService,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    const service = (cardRequest: CardRequest) => this.serviceCard(cardRequest);
    const agent = (cardRequest: CardRequest) => this.agentCard(cardRequest);
    const jwks = '/.well-known/jwks.json';
    const finger = '/.well-known/webfinger';
    return [
      ...cardPaths.map((path) =>
        this.cardRoute(path, 'Card of the default agent; with ?org= the card of an org', exactly(path), service),
      ),
      this.cardRoute(jwks, 'Public keys of card signatures', exactly(jwks), async (cardRequest) =>
        sendKeys(cardRequest, await this.keys.publicKeys()),
      ),
      this.cardRoute(
        '/.well-known/audit/{orgId}/jwks.json',
        'Public keys that verify the checkpoints of an org; none for an unknown org',
        between('/.well-known/audit/', '/jwks.json'),
        async (cardRequest) => sendKeys(cardRequest, await this.auditKeys.publicKeys(cardRequest.name)),
      ),
      this.cardRoute(finger, 'Addresses of an agent by its handle (RFC 7033)', exactly(finger), (cardRequest) =>
        this.findHandle(cardRequest),
      ),
      this.cardRoute('/a2a/agents', 'Published agents', exactly('/a2a/agents', '/a2a/agents/'), (cardRequest) =>
        this.index(cardRequest),
      ),
      ...cardPaths.map((path) =>
        this.cardRoute(`/a2a/agents/{name}${path}`, 'Card of an agent', between('/a2a/agents/', path), agent),
      ),
      this.cardRoute(
        '/a2a/{handle}/keys.json',
        'Public keys of an agent',
        between('/a2a/', '/keys.json'),
        (cardRequest) => this.agentKeys(cardRequest),
      ),
      ...['/agent.json', ...cardPaths].map((path) =>
        this.cardRoute(`/a2a/{handle}${path}`, 'Card of an agent, by handle or name', between('/a2a/', path), agent),
      ),
    ];
  }

  private cardRoute(
    template: string,
    summary: string,
    match: HotRoute['match'],
    answer: (cardRequest: CardRequest) => Promise<void>,
  ): HotRoute {
    return {
      template,
      methods,
      summary,
      match,
      handle: async (request, response, target, params) => {
        if (request.method === 'OPTIONS') return void response.writeHead(204, preflight).end();
        try {
          await answer(await this.readRequest(request, response, target, params.name ?? ''));
        } catch (error) {
          const known = RialtoError.from(error);
          if (known.code === 'internal') throw error;
          for (const [header, value] of Object.entries(cors)) response.setHeader(header, value);
          sendProblem(request, response, known.code, known);
        }
      },
    };
  }

  private async readRequest(
    request: DoorRequest,
    response: DoorResponse,
    { query }: Target,
    name: string,
  ): Promise<CardRequest> {
    const header = request.headers['a2a-version'];
    const version = (Array.isArray(header) ? header[0] : header) ?? query.get('A2A-Version') ?? undefined;
    return { request, response, query, name, version, reader: await this.contexts.orgOf(request) };
  }

  private async serviceCard(cardRequest: CardRequest): Promise<void> {
    const slug = cardRequest.query.get('org');
    if (slug !== null) {
      const shared = await this.published.orgCard(slug, cardRequest.version);
      return shared ? send(cardRequest, shared, 'no-store') : notFound();
    }
    const orgDefault = cardRequest.reader && (await this.published.defaultAgent(cardRequest.reader));
    const agent = orgDefault ?? (await this.published.defaultAgent());
    if (agent) return this.sendCard(cardRequest, agent, (options) => this.published.serviceCard(agent, options));
    return send(cardRequest, await this.published.gatewayCard(cardRequest.version), publicCache);
  }

  private async agentCard(cardRequest: CardRequest): Promise<void> {
    const agent = await this.published.resolve(cardRequest.name, cardRequest.reader);
    return agent ? this.sendCard(cardRequest, agent, (options) => this.published.cardFor(agent, options)) : notFound();
  }

  /** Callers of the agent's org get the extended card (AN-07). */
  private async sendCard(
    cardRequest: CardRequest,
    agent: PublishedAgent,
    cardFor: (options: CardWish) => Promise<BuiltCard>,
  ): Promise<void> {
    const known = cardRequest.reader?.id === agent.org.id;
    const options = { variant: known ? 'extended' : 'public', version: cardRequest.version } as const;
    send(cardRequest, await cardFor(options), known ? privateCache : publicCache);
  }

  /** Lists the agents of the caller's org; those of the org `default` for anonymous callers (RY-06, RY-07). */
  private async index(cardRequest: CardRequest): Promise<void> {
    const body = await this.published.index(cardRequest.reader);
    send(cardRequest, { body, etag: etagOf(body) }, 'no-store');
  }

  /** Lists the keys that senders encrypt to; a new key must be seen soon, so answers are revalidated (RI-52). */
  private async agentKeys(cardRequest: CardRequest): Promise<void> {
    const agent = await this.published.resolve(cardRequest.name, cardRequest.reader);
    if (!agent) return notFound();
    const body = JSON.stringify({ keys: agent.keys });
    send(cardRequest, { body, etag: etagOf(body) }, 'public, no-cache');
  }

  /** Finds an agent by `?resource=acct:word@host` (RI-50). */
  private async findHandle({ request, response, query, reader }: CardRequest): Promise<void> {
    const handle = handleIn(query.get('resource') ?? '');
    if (handle === undefined)
      throw new RialtoError('invalid_params', { message: 'resource: must be acct:word@host, the handle of an agent' });
    const agent = await this.published.resolve(handle, reader);
    if (!agent) return notFound();
    const body = JSON.stringify(descriptorOf(handle, this.published.urlsOf(agent), query.getAll('rel')));
    response.writeHead(200, { ...cors, 'Cache-Control': 'no-store', 'Content-Type': 'application/jrd+json' });
    response.end(request.method === 'HEAD' ? undefined : body);
  }
}

function sendKeys(cardRequest: CardRequest, keys: readonly PublicJwk[]): void {
  const body = JSON.stringify({ keys });
  send(cardRequest, { body, etag: etagOf(body) }, keysCache);
}

function send({ request, response }: CardRequest, card: ValidatedBody, cacheControl: string): void {
  sendValidated(request, response, card, {
    ...cors,
    'Cache-Control': cacheControl,
    Vary: 'A2A-Version, Authorization',
    'X-Content-Type-Options': 'nosniff',
  });
}

function notFound(): never {
  throw new RialtoError('not_found', { message: 'no such agent' });
}

function exactly(...paths: string[]): HotRoute['match'] {
  return (path) => (paths.includes(path) ? {} : undefined);
}

/** Matches one segment between two parts of a path, decoded; no match when the segment cannot be decoded. */
function between(before: string, after: string): HotRoute['match'] {
  return (path) => {
    if (!path.startsWith(before) || !path.endsWith(after)) return undefined;
    const segment = path.slice(before.length, -after.length);
    if (segment === '' || segment.includes('/')) return undefined;
    const name = percentDecoded(segment);
    return name === undefined ? undefined : { name };
  };
}
