import { Injectable } from '@nestjs/common';
import type { CallContext, OrgRef, Surface } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { parseTraceparent } from '../../platform/telemetry/trace-context.js';
import { LimitsService } from '../limits.service.js';
import { maxDepth } from '../limits.js';
import { AuthService, type Identity } from './auth.service.js';

/** Header that counts the hops of delegation behind a call; ours to every agent, believed from a verified caller. */
export const depthHeader = 'x-rialto-depth';

/** Makes the call context of a request: identity, limits, depth, trace. The first thing that every door does. */
@Injectable()
export class ContextService {
  constructor(
    private readonly auth: AuthService,
    private readonly limits: LimitsService,
  ) {}

  /**
   * @param lenient as in AuthService.authenticate. Throws `unauthenticated`, `auth_not_configured`, `rate_limited` or
   * `loop_detected`.
   */
  async open(request: DoorRequest, surface: Surface, signal?: AbortSignal, lenient = false): Promise<CallContext> {
    return this.openAs(await this.auth.authenticate(request, lenient), request, surface, signal);
  }

  /** The same for a caller whom the door itself recognised. */
  openAs(identity: Identity, request: DoorRequest, surface: Surface, signal?: AbortSignal): CallContext {
    const { org, principal, expiresAt } = identity;
    this.limits.admit({ org, principal });
    const ctx: CallContext = {
      org,
      principal,
      surface,
      requestId: request.requestId,
      depth: depthOf(request),
      ...(expiresAt !== undefined && { expiresAt }),
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

  /** Charges one more message of a request that holds several; `open` charged the first. Throws `rate_limited`. */
  admit({ org, principal }: CallContext): void {
    this.limits.admit({ org, principal });
  }
}

function depthOf(request: DoorRequest): number {
  const text = request.headers[depthHeader];
  if (text === undefined) return 0;
  const depth = typeof text === 'string' && /^\d{1,2}$/.test(text) ? Number(text) : Infinity;
  if (depth >= maxDepth)
    throw new RialtoError('loop_detected', { message: `delegation may be ${maxDepth} hops deep`, data: { maxDepth } });
  return depth;
}
