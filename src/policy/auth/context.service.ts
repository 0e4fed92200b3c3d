import { Injectable } from '@nestjs/common';
import type { CallContext, Surface } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { parseTraceparent } from '../../platform/telemetry/trace-context.js';
import { LimitsService } from '../limits.service.js';
import { maxDepth } from '../limits.js';
import { AuthService } from './auth.service.js';

/** Header that counts the hops of delegation behind a call; ours to every agent, believed from a verified caller. */
export const depthHeader = 'x-rialto-depth';

/** Makes the call context of a request: identity, limits, depth, trace. The first thing that every door does. */
@Injectable()
export class ContextService {
  constructor(
    private readonly auth: AuthService,
    private readonly limits: LimitsService,
  ) {}

  /** Throws `unauthenticated`, `auth_not_configured`, `rate_limited` or `loop_detected`. */
  async open(request: DoorRequest, surface: Surface, signal?: AbortSignal): Promise<CallContext> {
    const { org, principal, expiresAt } = await this.auth.authenticate(request);
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
