import { createParamDecorator, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { ContextService } from '../../policy/context.service.js';
import { ExecutionTokens, type TokenScope } from '../execution-tokens.js';

/** The sender of a report: the bearer of a task's token, or a caller with a credential of an org. */
export type Reporter = (TokenScope & { readonly requestId: string }) | { readonly ctx: CallContext };

interface ReportRequest extends DoorRequest {
  reporter?: Reporter;
}

/** Admits bearers of a task's token, and callers of an org, before the body is read. */
@Injectable()
export class ExecutionGuard implements CanActivate {
  constructor(
    private readonly tokens: ExecutionTokens,
    private readonly contexts: ContextService,
  ) {}

  async canActivate(host: ExecutionContext): Promise<boolean> {
    const request = host.switchToHttp().getRequest<ReportRequest>();
    const scope = this.tokens.scopeOf(request);
    const { requestId } = request;
    request.reporter = scope ? { ...scope, requestId } : { ctx: await this.contexts.openContext(request, 'rest') };
    return true;
  }
}

/** The reporter that the guard admitted. */
export const ReportedBy = createParamDecorator((_data: unknown, host: ExecutionContext): Reporter => {
  const { reporter } = host.switchToHttp().getRequest<ReportRequest>();
  if (!reporter) throw new RialtoError('unauthenticated');
  return reporter;
});
