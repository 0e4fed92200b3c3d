import { hash, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { CallContext, OrgRef } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { whenGone } from '../platform/http/caller-gone.js';
import type { DoorRequest, DoorResponse } from '../platform/http/http.types.js';
import { ContextService } from '../policy/context.service.js';
import type { A2aVersion } from '../protocol/a2a/model.js';
import { PublishedService } from '../registry/published.service.js';
import type { PublishedAgent } from '../registry/published.types.js';
import type { Asked } from './operations.js';

const maxKeyLength = 255;
const waitSeconds = { least: 1, most: 300, usual: 60 };

/** Who came, perhaps to no agent in particular: known, within the limits, before anything of the request is read. */
export interface Arrival {
  readonly ctx: CallContext;
  readonly agent?: PublishedAgent;
  /** The caller has the static bearer of `agent`, which opens no other. */
  readonly isOwnBearer: boolean;
  /** What aborts when the caller goes away. */
  readonly gone: () => AbortSignal;
}

/** Who came to which agent. */
export interface A2aRequest extends Arrival {
  readonly agent: PublishedAgent;
}

/** The first steps of every A2A door: identity, agent, extensions, and how long to wait. */
@Injectable()
export class A2aRequests {
  constructor(
    private readonly contexts: ContextService,
    private readonly published: PublishedService,
    @Inject(SETTINGS) readonly settings: Settings,
  ) {}

  /**
   * @param name of an agent; absent: the default one. @param older the door takes tokens of older callers where the operator
   * says so. Throws `unauthenticated`, `auth_not_configured`, `rate_limited`, `loop_detected` or `not_found`.
   */
  async open(
    request: DoorRequest,
    response: DoorResponse,
    name: string | undefined,
    older = false,
  ): Promise<A2aRequest> {
    const { agent, ...arrival } = await this.enter(request, response, name, older);
    if (!agent) throw noAgentNamed();
    return { ...arrival, agent };
  }

  /** The same for doors that find the agent themselves when none is named and none is the default. */
  async enter(request: DoorRequest, response: DoorResponse, name: string | undefined, older = false): Promise<Arrival> {
    const own = await this.byOwnBearer(request, name);
    const ctx =
      own ?? (await this.contexts.open(request, 'a2a', undefined, older && this.settings.RIALTO_LEGACY_TOKENS));
    const found = this.find(name, ctx.org);
    const agent = found instanceof Promise ? await found : found;
    if (agent || name === undefined) return { ctx, agent, isOwnBearer: own !== undefined, gone: whenGone(response) };
    throw new RialtoError('not_found', {
      message: 'no such agent',
      hint: 'GET /a2a/agents lists what may be called: agents whose a2a_enabled is true',
    });
  }

  private find(name: string | undefined, org?: OrgRef) {
    return name === undefined ? this.published.defaultAgent(org) : this.published.resolve(name, org);
  }

  /** The static bearer of one declared agent opens the doors of that agent alone (AN-95, AN-96). */
  private async byOwnBearer(request: DoorRequest, name: string | undefined): Promise<CallContext | undefined> {
    if (!this.hasOwnBearers) return undefined;
    const agent = await this.find(name);
    const bearer = agent && this.published.staticBearerOf(agent);
    if (!bearer || !isSame(request.headers.authorization, `Bearer ${bearer}`)) return undefined;
    const principal = { kind: 'service', id: `${agent.name}-key`, role: 'member', groups: [] } as const;
    return this.contexts.openAs({ org: agent.org, principal }, request, 'a2a');
  }

  private get hasOwnBearers(): boolean {
    return this.settings.configFile.published.some(({ apiKey }) => apiKey !== undefined);
  }

  /** What the headers say of an operation in a version. Throws `version_not_supported`, `extension_required`, `invalid_params`. */
  ask(
    { ctx, agent, gone }: Pick<A2aRequest, 'ctx' | 'agent' | 'gone'>,
    version: A2aVersion,
    request: DoorRequest,
    response: DoorResponse,
  ): Asked {
    if (!agent.versions.includes(version)) {
      throw new RialtoError('version_not_supported', {
        message: `this agent does not speak A2A ${version}`,
        data: { supported: agent.versions },
      });
    }
    this.activate(agent, request, response);
    const after = lastEventId(request);
    const idempotencyKey = keyOf(request);
    return {
      ctx,
      agent,
      version,
      gone,
      waitMs: waitOf(request) * 1_000,
      onReplay: () => void (response.headersSent || response.setHeader(replayedHeader, 'true')),
      ...(after !== undefined && { after }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    };
  }

  /** Extensions that the caller names and the agent has are active, and said back (v1.0 section 3.2.6). */
  private activate({ extensions }: PublishedAgent, request: DoorRequest, response: DoorResponse): void {
    if (extensions.length === 0) return;
    const header = request.headers['a2a-extensions'] ?? request.headers['x-a2a-extensions'] ?? '';
    const wanted = new Set(
      String(header)
        .split(',')
        .map((uri) => uri.trim()),
    );
    const missing = extensions.find(({ uri, required }) => required && !wanted.has(uri));
    if (missing) {
      throw new RialtoError('extension_required', {
        message: `this agent requires the extension ${missing.uri}`,
        data: { extension: missing.uri },
      });
    }
    const active = extensions.filter(({ uri }) => wanted.has(uri)).map(({ uri }) => uri);
    if (active.length > 0) response.setHeader('A2A-Extensions', active.join(', '));
  }
}

/** There is nobody to answer a request that names no agent. */
export function noAgentNamed(): RialtoError {
  return new RialtoError('not_found', {
    message: 'no default agent is set',
    hint: 'PATCH /api/orgs/{slug} with defaultAgent names one, and so does defaultAgent in rialto.config.json',
  });
}

function isSame(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false;
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'));
}

/** `A2A-Version`, or the query parameter of that name (v1.0 section 3.6.1). */
export function versionHeader(request: DoorRequest, query: URLSearchParams): string | undefined {
  const header = request.headers['a2a-version'];
  return (Array.isArray(header) ? header[0] : header) ?? query.get('A2A-Version') ?? undefined;
}

/** `X-A2A-Timeout` in seconds (RI-27). */
function waitOf(request: DoorRequest): number {
  const text = request.headers['x-a2a-timeout'];
  if (text === undefined) return waitSeconds.usual;
  const seconds = typeof text === 'string' && /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (seconds >= waitSeconds.least && seconds <= waitSeconds.most) return seconds;
  throw invalidHeader('X-A2A-Timeout', `is a whole number of seconds from ${waitSeconds.least} to ${waitSeconds.most}`);
}

function lastEventId(request: DoorRequest): number | undefined {
  const text = request.headers['last-event-id'];
  if (text === undefined || text === '') return undefined;
  if (typeof text === 'string' && /^\d{1,9}$/.test(text)) return Number(text);
  throw invalidHeader('Last-Event-ID', 'is the number of an event of this task');
}

/** On the answer to a message whose key was used before, on any binding (RI-46). */
export const replayedHeader = 'Idempotent-Replayed';

/** `Idempotency-Key`, on any binding (RI-46). */
export function keyOf({ headers }: DoorRequest): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && key.length >= 1 && key.length <= maxKeyLength) return key;
  throw invalidHeader('Idempotency-Key', `has 1 to ${maxKeyLength} characters`);
}

function invalidHeader(field: string, description: string): RialtoError {
  return new RialtoError('invalid_params', {
    message: `${field} ${description}`,
    violations: [{ field, description }],
  });
}
