import { Injectable } from '@nestjs/common';
import type { CallContext, CallLimit, OrgRef, Surface } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import type { DoorRequest } from '../platform/http/http.types.js';
import { foreign, lineageHeader, LineageSeal } from '../platform/secrets/lineage.js';
import { parseTraceparent } from '../platform/telemetry/trace-context.js';
import { LimitsService } from './limits.service.js';
import { maxDepth } from './limits/limits.js';
import { AuthService, type Identity } from './auth.service.js';

/**
 * Header with the number of delegation hops behind a call. The gateway sends it to every agent, and believes it from
 * an authenticated caller.
 */
export const depthHeader = 'x-rialto-depth';

/** Creates the call context of a request: identity, limits, depth, trace. Every door calls it first. */
@Injectable()
export class ContextService {
  constructor(
    private readonly auth: AuthService,
    private readonly limits: LimitsService,
    private readonly seal: LineageSeal,
  ) {}

  /**
   * Authenticates a request and creates its context. Throws `unauthenticated`, `auth_not_configured`, `rate_limited`,
   * `loop_detected` (also for a damaged lineage), or `remote_timeout` when the deadline of the original call has
   * passed.
   * @param lenient as in AuthService.authenticate.
   */
  async openContext(
    request: DoorRequest,
    surface: Surface,
    signal?: AbortSignal,
    lenient = false,
  ): Promise<CallContext> {
    return this.openAs(await this.auth.authenticate(request, lenient), request, surface, signal);
  }

  /** Creates the context of a caller that the door itself identified. */
  openAs(identity: Identity, request: DoorRequest, surface: Surface, signal?: AbortSignal): CallContext {
    const { org, principal, expiresAt, tokenId, isForAudience, approvedActions } = identity;
    this.limits.admit({ org, principal });
    const ctx: CallContext = {
      org,
      principal,
      surface,
      requestId: request.requestId,
      ...this.delegationOf(request),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(tokenId !== undefined && { tokenId }),
      ...(isForAudience && { isForAudience }),
      ...(approvedActions && { approvedActions }),
      trace: parseTraceparent(request.headers),
      signal,
    };
    request.ctx = ctx;
    return ctx;
  }

  /**
   * Returns the org of a caller at a public door; undefined without a valid credential, and for anonymous callers.
   * Throws `rate_limited`.
   */
  async orgOf(request: DoorRequest): Promise<OrgRef | undefined> {
    if (request.headers.authorization === undefined) return undefined;
    const identity = await this.auth.whoIs(request);
    if (!identity) return undefined;
    this.limits.admit(identity);
    return identity.org;
  }

  /** Returns the remaining requests of the caller. */
  left({ org, principal }: CallContext): CallLimit {
    return this.limits.left({ org, principal });
  }

  /**
   * Counts one more message of a request with several messages; `openContext` counted the first. Throws `rate_limited`.
   */
  admit({ org, principal }: CallContext): void {
    this.limits.admit({ org, principal });
  }

  /**
   * Returns depth and path of a call. The depth is the larger one of the sealed lineage and the plain header. When
   * another deployment delegated the call, only the depth is known; this also ends a circle between two deployments.
   */
  private delegationOf(request: DoorRequest): Pick<CallContext, 'depth' | 'lineage'> {
    const plain = depthOf(request);
    const header = request.headers[lineageHeader];
    const opened = typeof header === 'string' ? this.seal.openLineage(header) : undefined;
    if (header !== undefined && !opened)
      throw new RialtoError('loop_detected', {
        message: 'the lineage of this call is damaged',
        data: { reason: 'damaged_lineage' },
      });
    const sealed = opened === foreign ? undefined : opened;
    const depth = requireDepth(Math.max(plain, sealed?.depth ?? 0));
    if (!sealed) return { depth };
    const { path, deadlineAt } = sealed;
    if (deadlineAt !== undefined && deadlineAt <= systemClock.now())
      throw new RialtoError('remote_timeout', { message: 'the call that led to this one has no time left' });
    return { depth, lineage: { path, deadlineAt } };
  }
}

function depthOf(request: DoorRequest): number {
  const text = request.headers[depthHeader];
  if (text === undefined) return 0;
  return typeof text === 'string' && /^\d{1,2}$/.test(text) ? Number(text) : Infinity;
}

function requireDepth(depth: number): number {
  if (depth < maxDepth) return depth;
  throw new RialtoError('loop_detected', {
    message: `delegation may be at most ${maxDepth} hops deep`,
    data: { maxDepth },
  });
}
