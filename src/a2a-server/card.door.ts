import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../platform/http/http.types.js';
import { sendProblem } from '../platform/http/problem.js';
import { etagOf, sendValidated, type ValidatedBody } from '../platform/http/validated-answer.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { ContextService } from '../policy/context.service.js';
import { PublishedService, type BuiltCard, type CardWish } from '../registry/published.service.js';
import type { PublishedAgent } from '../registry/published.types.js';

const methods = ['GET', 'HEAD', 'OPTIONS'];
const cardPaths = ['/.well-known/agent-card.json', '/.well-known/agent.json'];
const publicly = 'public, max-age=60';
const privately = 'private, no-store';
const keysFor = 'public, max-age=300, stale-while-revalidate=3600';

/** Pages of browsers may read what is open to anyone, with a token of theirs too; no cookie is ever looked at. */
const cors = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'ETag, Last-Modified' };
const preflight = {
  ...cors,
  'Access-Control-Allow-Methods': methods.join(', '),
  'Access-Control-Allow-Headers': 'Authorization, A2A-Version, A2A-Extensions, If-None-Match, If-Modified-Since',
  'Access-Control-Max-Age': '86400',
};

/** One GET: who asks, the version of the protocol it names, and the agent it names. */
interface CardRequest {
  readonly request: DoorRequest;
  readonly response: DoorResponse;
  readonly query: URLSearchParams;
  readonly name: string;
  readonly version: string | undefined;
  /** The org of a good credential. A bad one reads as nobody does, for cards are public (AN-01). */
  readonly reader: OrgRef | undefined;
}

/** Cards, the index of agents and the keys that cards are signed by: open to anyone, in front of Express. */
@Injectable()
export class CardDoor {
  constructor(
    private readonly published: PublishedService,
    private readonly contexts: ContextService,
    private readonly keys: SigningKeys,
  ) {}

  /** The rows of the front door's table. */
  routes(): HotRoute[] {
    const service = (cardRequest: CardRequest) => this.serviceCard(cardRequest);
    const agent = (visit: CardRequest) => this.agentCard(visit);
    const jwks = '/.well-known/jwks.json';
    return [
      ...cardPaths.map((path) =>
        this.route(path, 'Card of the default agent; with ?org= of an org', exactly(path), service),
      ),
      this.route(jwks, 'Keys that cards are signed by', exactly(jwks), (visit) => this.jwks(visit)),
      this.route('/a2a/agents', 'Published agents', exactly('/a2a/agents', '/a2a/agents/'), (visit) =>
        this.index(visit),
      ),
      ...cardPaths.map((path) =>
        this.route(`/a2a/agents/{name}${path}`, 'Card of an agent', between('/a2a/agents/', path), agent),
      ),
      ...['/agent.json', ...cardPaths].map((path) =>
        this.route(`/a2a/{handle}${path}`, 'Card of an agent, by handle or name', between('/a2a/', path), agent),
      ),
    ];
  }

  private route(
    template: string,
    summary: string,
    match: HotRoute['match'],
    answer: (visit: CardRequest) => Promise<void>,
  ): HotRoute {
    return {
      template,
      methods,
      summary,
      match,
      handle: async (request, response, target, params) => {
        if (request.method === 'OPTIONS') return void response.writeHead(204, preflight).end();
        try {
          await answer(await this.visit(request, response, target, params.name ?? ''));
        } catch (error) {
          const known = RialtoError.from(error);
          if (known.code === 'internal') throw error;
          for (const [header, value] of Object.entries(cors)) response.setHeader(header, value);
          sendProblem(request, response, known.code, known);
        }
      },
    };
  }

  private async visit(
    request: DoorRequest,
    response: DoorResponse,
    { query }: Target,
    name: string,
  ): Promise<CardRequest> {
    const header = request.headers['a2a-version'];
    const version = (Array.isArray(header) ? header[0] : header) ?? query.get('A2A-Version') ?? undefined;
    return { request, response, query, name, version, reader: await this.contexts.orgOf(request) };
  }

  private async serviceCard(visit: CardRequest): Promise<void> {
    const slug = visit.query.get('org');
    if (slug !== null) {
      const shared = await this.published.orgCard(slug, visit.version);
      return shared ? send(visit, shared, 'no-store') : notFound();
    }
    const own = visit.reader && (await this.published.defaultAgent(visit.reader));
    const agent = own ?? (await this.published.defaultAgent());
    if (agent) return this.sendCard(visit, agent, (wish) => this.published.serviceCard(agent, wish));
    return send(visit, await this.published.gatewayCard(visit.version), publicly);
  }

  private async agentCard(visit: CardRequest): Promise<void> {
    const agent = await this.published.resolve(visit.name, visit.reader);
    return agent ? this.sendCard(visit, agent, (wish) => this.published.cardFor(agent, wish)) : notFound();
  }

  /** Callers whom the agent's org knows see all of it (AN-07). */
  private async sendCard(
    visit: CardRequest,
    agent: PublishedAgent,
    cardFor: (wish: CardWish) => Promise<BuiltCard>,
  ): Promise<void> {
    const known = visit.reader?.id === agent.org.id;
    const wish = { variant: known ? 'extended' : 'public', version: visit.version } as const;
    send(visit, await cardFor(wish), known ? privately : publicly);
  }

  /** The agents of the caller's org, of `default` for anyone (RY-06, RY-07). */
  private async index(visit: CardRequest): Promise<void> {
    const body = await this.published.index(visit.reader);
    send(visit, { body, etag: etagOf(body) }, 'no-store');
  }

  private async jwks(visit: CardRequest): Promise<void> {
    const body = Buffer.from(JSON.stringify({ keys: await this.keys.publicKeys() }));
    send(visit, { body, etag: etagOf(body) }, keysFor);
  }
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

/** One segment between two parts of a path, decoded; no route for what does not decode. */
function between(before: string, after: string): HotRoute['match'] {
  return (path) => {
    if (!path.startsWith(before) || !path.endsWith(after)) return undefined;
    const segment = path.slice(before.length, -after.length);
    if (segment === '' || segment.includes('/')) return undefined;
    try {
      return { name: decodeURIComponent(segment) };
    } catch {
      return undefined;
    }
  };
}
