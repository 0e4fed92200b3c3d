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

/** Header that counts the hops of delegation behind a call; ours to every agent, believed from a verified caller. */
export const depthHeader = 'x-rialto-depth';

/** Makes the call context of a request: identity, limits, depth, trace. The first thing that every door does. */
@Injectable()
export class ContextService {
  constructor(
    private readonly auth: AuthService,
    private readonly limits: LimitsService,
    private readonly seal: LineageSeal,
  ) {}

  /**
   * @param lenient as in AuthService.authenticate. Throws `unauthenticated`, `auth_not_configured`, `rate_limited`,
   * `loop_detected`, also for a damaged lineage, or `remote_timeout` when nobody waits for the answer any more.
   */
  async open(request: DoorRequest, surface: Surface, signal?: AbortSignal, lenient = false): Promise<CallContext> {
    return this.openAs(await this.auth.authenticate(request, lenient), request, surface, signal);
  }

  /** The same for a caller whom the door itself recognised. */
  openAs(identity: Identity, request: DoorRequest, surface: Surface, signal?: AbortSignal): CallContext {
    const { org, principal, expiresAt, tokenId } = identity;
    this.limits.admit({ org, principal });
    const ctx: CallContext = {
      org,
      principal,
      surface,
      requestId: request.requestId,
      ...this.delegationOf(request),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(tokenId !== undefined && { tokenId }),
      trace: parseTraceparent(request.headers),
      signal,
    };
    request.ctx = ctx;
    return ctx;
  }

  /**
   * The org of a caller at a door that is open to anyone: undefined without a good credential, and for anonymous callers that
   * need none. Throws `rate_limited`.
   */
  async orgOf(request: DoorRequest): Promise<OrgRef | undefined> {
    if (request.headers.authorization === undefined) return undefined;
    const identity = await this.auth.whoIs(request);
    if (!identity) return undefined;
    this.limits.admit(identity);
    return identity.org;
  }

  /** What the limits let the caller send still. */
  left({ org, principal }: CallContext): CallLimit {
    return this.limits.left({ org, principal });
  }

  /** Charges one more message of a request that holds several; `open` charged the first. Throws `rate_limited`. */
  admit({ org, principal }: CallContext): void {
    this.limits.admit({ org, principal });
  }

  /**
   * How deep a call is, and through whom it came: what its lineage says, or its plain depth when that is more. Of a call that another
   * deployment delegated the depth alone is known, which ends a circle between two of them as well.
   */
  private delegationOf(request: DoorRequest): Pick<CallContext, 'depth' | 'lineage'> {
    const plain = depthOf(request);
    const header = request.headers[lineageHeader];
    const opened = typeof header === 'string' ? this.seal.open(header) : undefined;
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
      throw new RialtoError('remote_timeout', { message: 'the call behind this one has no time left' });
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
  throw new RialtoError('loop_detected', { message: `delegation may be ${maxDepth} hops deep`, data: { maxDepth } });
}
