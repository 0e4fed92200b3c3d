import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { tellLeft } from '../../platform/http/limit-headers.js';
import { publicRoute } from '../../platform/http/public.decorator.js';
import { ContextService } from '../context.service.js';

/**
 * Guard of every controller: it authenticates the caller and applies the rate limits. The verb bus decides what the
 * caller may do.
 */
@Injectable()
export class AuthGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly contexts: ContextService,
  ) {}

  async canActivate(host: ExecutionContext): Promise<boolean> {
    if (this.reflector.getAllAndOverride<boolean>(publicRoute, [host.getHandler(), host.getClass()])) return true;
    const http = host.switchToHttp();
    const ctx = await this.contexts.openContext(http.getRequest<DoorRequest>(), 'rest');
    tellLeft(http.getResponse<DoorResponse>(), this.contexts.left(ctx));
    return true;
  }
}
