import { Inject, Injectable } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { AuditService } from '../audit/audit.service.js';
import { callerOf } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { storableText } from '../kernel/json.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { basicOf } from '../platform/http/basic-auth.js';
import { clientAddress, parseTrustProxy, type TrustProxy } from '../platform/http/server/client-address.js';
import type { DoorRequest } from '../platform/http/http.types.js';
import { isOfOwnPage } from '../platform/http/server/origin-check.js';
import type { Gate } from '../platform/http/openapi.js';
import { sendProblem } from '../platform/http/problem.js';
import { Buckets } from './limits/limits.js';
import { apiKeyPrefix } from './auth/api-key.js';
import { defaultOrg } from './org.types.js';
import { ContextService } from './context.service.js';
import { CredentialStore } from './auth/credential.store.js';
import { isSameSecret } from '../platform/secrets/same-secret.js';

/**
 * Wrong passwords of one address that are allowed in a minute: enough for typing errors, too few for guessing
 * programs.
 */
const guessesPerMinute = 10;

/**
 * Controls access of operators to the pages outside the API: with an admin bearer of the default org, or Basic
 * `admin` and RIALTO_ADMIN_PASSWORD.
 */
@Injectable()
export class OperatorGate implements Gate {
  readonly admin: RequestHandler = (request, response, next) => void this.checkRequest(request, response, next);
  readonly docs: RequestHandler = (request, response, next) =>
    this.settings.production ? void this.checkRequest(request, response, next) : next();

  private readonly guesses = new Buckets(guessesPerMinute);
  private readonly trust: TrustProxy;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly contexts: ContextService,
    private readonly verbs: VerbBus,
    private readonly store: CredentialStore,
    private readonly audit: AuditService,
  ) {
    this.trust = parseTrustProxy(settings.RIALTO_TRUST_PROXY);
  }

  private async checkRequest(request: Request, response: Response, next: NextFunction): Promise<void> {
    const door = request as unknown as DoorRequest;
    try {
      // Browsers send a stored password with requests from any page (cross-site request forgery).
      if (!isRead(request) && !isOfOwnPage(request.headers))
        throw new RialtoError('denied', { message: 'a page of another site may not change anything here' });
      const basic = basicOf(request.headers.authorization);
      if (basic !== undefined && this.isAdminPassword(basic, clientAddress(request, this.trust))) {
        await this.recordChange(request, 'RIALTO_ADMIN_PASSWORD', 'service:RIALTO_ADMIN_PASSWORD');
        return next();
      }
      // A browser can only ask for user and password, so an API key of an admin is accepted as the password.
      if (basic?.startsWith('admin:')) request.headers.authorization = `Bearer ${basic.slice('admin:'.length)}`;
      const ctx = await this.contexts.openContext(door, 'rest');
      const action = isRead(request) ? 'admin_read' : 'admin_write';
      const allowed =
        ctx.org.slug === defaultOrg &&
        ctx.principal.role === 'admin' &&
        (await this.verbs.permits({ ctx, verb: 'operator.page', action, resource: { type: 'Org', id: ctx.org.slug } }));
      if (!allowed) throw new RialtoError('denied', { message: 'this page is for admins of the default org' });
      await this.recordChange(request, ctx.principal.id, callerOf(ctx.principal));
      next();
    } catch (error) {
      const known = RialtoError.from(error);
      sendProblem(door, response, known.code, known, 'Basic realm="rialto", Bearer realm="rialto"');
      if (known.code === 'internal') next(error);
    }
  }

  /** Records a change by an operator in the audit before it happens. */
  private async recordChange(request: Request, by: string, subject: string): Promise<void> {
    if (isRead(request)) return;
    const org = await this.store.orgBySlug(defaultOrg);
    const { method, requestId } = request as unknown as DoorRequest;
    const path = storableText(request.originalUrl.split('?')[0]!, 500);
    const personal = [{ subject, facts: { by: storableText(by, 256) } }];
    if (org) await this.audit.note(org.id, 'operator.act', { method, path, requestId }, personal);
  }

  /**
   * Compares the password. Throws `rate_limited`, even for the right password, after too many wrong ones from the
   * address.
   */
  private isAdminPassword(basic: string, address: string): boolean {
    const expected = this.settings.RIALTO_ADMIN_PASSWORD;
    if (expected === undefined) return false;
    const right = isSameSecret(basic, `admin:${expected}`);
    if (basic.startsWith(`admin:${apiKeyPrefix}`)) return right;
    const retryAfterSeconds = this.guesses.wait(address, systemClock.now());
    if (retryAfterSeconds > 0)
      throw new RialtoError('rate_limited', { message: 'too many wrong passwords', data: { retryAfterSeconds } });
    if (right) return true;
    this.guesses.takeToken(address, systemClock.now());
    return false;
  }
}

function isRead({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD';
}
