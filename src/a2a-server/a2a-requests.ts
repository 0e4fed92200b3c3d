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
import { isSameSecret } from '../platform/secrets/same-secret.js';

const maxKeyLength = 255;
const waitSeconds = { least: 1, most: 300, usual: 60 };

/**
 * Identified caller within its limits, before any part of the body is read; `agent` is absent when the request names
 * none.
 */
export interface Arrival {
  readonly ctx: CallContext;
  readonly agent?: PublishedAgent;
  /** True when the caller has the static bearer of `agent`, which is valid for that agent only. */
  readonly isOwnBearer: boolean;
  /** Returns a signal that aborts when the client disconnects. */
  readonly gone: () => AbortSignal;
}

/** Identified caller and the agent that it calls. */
export interface A2aRequest extends Arrival {
  readonly agent: PublishedAgent;
}

/** First steps of each A2A door: caller, agent, extensions, and how long to wait. */
@Injectable()
export class A2aRequests {
  constructor(
    private readonly contexts: ContextService,
    private readonly published: PublishedService,
    @Inject(SETTINGS) readonly settings: Settings,
  ) {}

  /**
   * Identifies the caller by the headers alone, before the request names its agent; `identify` uses the result. A
   * static bearer is checked by `identify` only. Throws like `identifyForAgent`, except for `not_found`.
   */
  async identifyCaller(request: DoorRequest): Promise<void> {
    if (!this.isStaticBearer(request)) await this.contexts.openContext(request, 'a2a');
  }

  /**
   * Identifies the caller and the agent. Throws `unauthenticated`, `auth_not_configured`, `rate_limited`,
   * `loop_detected` or `not_found`.
   *
   * @param name name of an agent; absent for the default agent.
   * @param older true when the door accepts tokens of older clients, if the settings allow it.
   */
  async identifyForAgent(
    request: DoorRequest,
    response: DoorResponse,
    name: string | undefined,
    older = false,
  ): Promise<A2aRequest> {
    const { agent, ...arrival } = await this.identify(request, response, name, older);
    if (!agent) throw noAgentNamed();
    return { ...arrival, agent };
  }

  /**
   * Like `identifyForAgent`, for doors that choose the agent themselves when the request names none and the org has no
   * default agent.
   */
  async identify(
    request: DoorRequest,
    response: DoorResponse,
    name: string | undefined,
    older = false,
  ): Promise<Arrival> {
    const bearerCtx = await this.byStaticBearer(request, name);
    const ctx =
      bearerCtx ??
      request.ctx ??
      (await this.contexts.openContext(request, 'a2a', undefined, older && this.settings.RIALTO_LEGACY_TOKENS));
    const found = this.findAgent(name, ctx.org);
    const agent = found instanceof Promise ? await found : found;
    if (agent || name === undefined)
      return { ctx, agent, isOwnBearer: bearerCtx !== undefined, gone: whenGone(response) };
    throw new RialtoError('not_found', {
      message: 'no such agent',
      hint: 'GET /a2a/agents lists the agents that can be called: those with a2a_enabled set to true',
    });
  }

  private findAgent(name: string | undefined, org?: OrgRef) {
    return name === undefined ? this.published.defaultAgent(org) : this.published.resolve(name, org);
  }

  /** The static bearer of a declared agent is valid at the doors of that agent only (AN-95, AN-96). */
  private async byStaticBearer(request: DoorRequest, name: string | undefined): Promise<CallContext | undefined> {
    if (!this.hasStaticBearers) return undefined;
    const agent = await this.findAgent(name);
    const bearer = agent && this.published.staticBearerOf(agent);
    if (!bearer || !isSameSecret(request.headers.authorization, `Bearer ${bearer}`)) return undefined;
    const principal = { kind: 'service', id: `${agent.name}-key`, role: 'member', groups: [] } as const;
    return this.contexts.openAs({ org: agent.org, principal }, request, 'a2a');
  }

  private isStaticBearer({ headers }: DoorRequest): boolean {
    return this.settings.configFile.published.some(
      ({ apiKey }) => apiKey !== undefined && isSameSecret(headers.authorization, `Bearer ${apiKey}`),
    );
  }

  private get hasStaticBearers(): boolean {
    return this.settings.configFile.published.some(({ apiKey }) => apiKey !== undefined);
  }

  /**
   * Reads the headers of an operation in one version. Throws `version_not_supported`, `extension_required`,
   * `invalid_params`.
   */
  readHeaders(
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
    this.activateExtensions(agent, request, response);
    const after = lastEventId(request);
    const idempotencyKey = idempotencyKeyIn(request);
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

  /**
   * Activates the extensions that the caller names and the agent has, and returns them in a header (v1.0 section
   * 3.2.6).
   */
  private activateExtensions({ extensions }: PublishedAgent, request: DoorRequest, response: DoorResponse): void {
    if (extensions.length === 0) return;
    const header = request.headers['a2a-extensions'] ?? request.headers['x-a2a-extensions'] ?? '';
    const requested = new Set(
      String(header)
        .split(',')
        .map((uri) => uri.trim()),
    );
    const missing = extensions.find(({ uri, required }) => required && !requested.has(uri));
    if (missing) {
      throw new RialtoError('extension_required', {
        message: `this agent requires the extension ${missing.uri}`,
        data: { extension: missing.uri },
      });
    }
    const active = extensions.filter(({ uri }) => requested.has(uri)).map(({ uri }) => uri);
    if (active.length > 0) response.setHeader('A2A-Extensions', active.join(', '));
  }
}

/** Error for a request that names no agent when the org has no default agent. */
export function noAgentNamed(): RialtoError {
  return new RialtoError('not_found', {
    message: 'no default agent is set',
    hint: 'set defaultAgent with PATCH /api/orgs/{slug}, or in rialto.config.json',
  });
}

/** Reads `A2A-Version`, or the query parameter with that name (v1.0 section 3.6.1). */
export function versionHeader(request: DoorRequest, query: URLSearchParams): string | undefined {
  const header = request.headers['a2a-version'];
  return (Array.isArray(header) ? header[0] : header) ?? query.get('A2A-Version') ?? undefined;
}

/** Reads `X-A2A-Timeout` in seconds (RI-27). */
function waitOf(request: DoorRequest): number {
  const text = request.headers['x-a2a-timeout'];
  if (text === undefined) return waitSeconds.usual;
  const seconds = typeof text === 'string' && /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (seconds >= waitSeconds.least && seconds <= waitSeconds.most) return seconds;
  throw invalidHeader(
    'X-A2A-Timeout',
    `must be a whole number of seconds from ${waitSeconds.least} to ${waitSeconds.most}`,
  );
}

/** Reads `Last-Event-ID`; undefined when it is absent or empty. Throws `invalid_params` when it is not a number. */
export function lastEventId(request: DoorRequest): number | undefined {
  const text = request.headers['last-event-id'];
  if (text === undefined || text === '') return undefined;
  if (typeof text === 'string' && /^\d{1,9}$/.test(text)) return Number(text);
  throw invalidHeader('Last-Event-ID', 'must be the number of an event of this task');
}

/** Header of an answer to a message with a key that was used before, on each binding (RI-46). */
export const replayedHeader = 'Idempotent-Replayed';

/** Reads `Idempotency-Key`, on each binding (RI-46). */
export function idempotencyKeyIn({ headers }: DoorRequest): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && key.length >= 1 && key.length <= maxKeyLength) return key;
  throw invalidHeader('Idempotency-Key', `must have 1 to ${maxKeyLength} characters`);
}

function invalidHeader(field: string, description: string): RialtoError {
  return new RialtoError('invalid_params', {
    message: `${field} ${description}`,
    violations: [{ field, description }],
  });
}
