import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { errorCodes, RialtoError } from '../../kernel/errors.js';
import { basicOf } from '../../platform/http/basic-auth.js';
import { readText } from '../../platform/http/body.js';
import type { DoorRequest, DoorResponse, HotRoute } from '../../platform/http/http.types.js';
import { problemStatus } from '../../platform/http/problem.js';
import { isOfOwnPage } from '../../platform/http/server/origin-check.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { ContextService } from '../../policy/context.service.js';
import { ApprovalService } from '../approval.service.js';
import { DecideApproval } from '../approval.types.js';
import { approvalPage, messagePage, pagePolicy } from './approval-page.js';
import { ApprovalPages } from './approval-pages.js';

const path = /^\/approvals\/([0-9a-f-]{1,64})\/?$/i;
const maxFormBytes = 8_192;

/**
 * The page where a person decides about one approval (AN-60). A browser asks for a user and a password; the password is
 * the person's API key or token.
 */
@Injectable()
export class ApprovalPageDoor {
  constructor(
    private readonly contexts: ContextService,
    private readonly approvals: ApprovalService,
    private readonly pages: ApprovalPages,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    return [
      {
        template: '/approvals/{id}',
        methods: ['GET', 'POST'],
        summary: 'Page where a person approves or denies one call',
        match: (given) => {
          const id = path.exec(given)?.[1];
          return id === undefined ? undefined : { id };
        },
        handle: (request, response, _target, { id = '' }) => this.handle(request, response, id),
      },
    ];
  }

  private async handle(request: DoorRequest, response: DoorResponse, id: string): Promise<void> {
    try {
      if (!this.pages.isOn) return sendPage(response, 501, notServed);
      const isDecision = request.method === 'POST';
      // A browser sends a stored password with requests from any page (cross-site request forgery).
      if (isDecision && !isOfOwnPage(request.headers))
        throw new RialtoError('denied', { message: 'a page of another site may not decide here' });
      const ctx = await this.identify(request);
      if (!isDecision) return sendPage(response, 200, approvalPage(await this.approvals.get(ctx, id)));
      const { decidedBy, state } = await this.approvals.decide(ctx, id, await readForm(request));
      sendPage(response, 200, messagePage(`The call is ${state}`, `Decided by ${decidedBy}. ${nextStep[state] ?? ''}`));
    } catch (thrown) {
      this.sendError(request, response, thrown);
    }
  }

  private identify(request: DoorRequest): Promise<CallContext> {
    const basic = basicOf(request.headers.authorization);
    if (basic !== undefined) request.headers.authorization = `Bearer ${basic.slice(basic.indexOf(':') + 1)}`;
    return this.contexts.openContext(request, 'rest');
  }

  private sendError({ requestId }: DoorRequest, response: DoorResponse, thrown: unknown): void {
    if (response.headersSent || response.destroyed) return void response.destroy();
    const error = RialtoError.from(thrown);
    const { title, public: isPublic } = errorCodes[error.code];
    if (error.code === 'internal') this.log.error({ err: thrown, requestId }, 'a request failed');
    const status = problemStatus[error.code];
    if (status === 401) response.setHeader('WWW-Authenticate', 'Basic realm="rialto", Bearer realm="rialto"');
    sendPage(response, status, messagePage(title, isPublic ? error.message : ''));
  }
}

const nextStep: Partial<Record<string, string>> = {
  approved: 'It runs when the caller sends it again. You can close this page.',
  denied: 'The caller gets your refusal when it sends the call again. You can close this page.',
};

const notServed = messagePage(
  'This page is not served',
  'RIALTO_APPROVAL_PAGES is off in this deployment. Decide with POST /api/approvals/{id}.',
);

/** Reads the two fields of the form. Throws `invalid_params`. */
async function readForm(request: DoorRequest): Promise<DecideApproval> {
  const form = new URLSearchParams(await readText(request, maxFormBytes));
  const reason = form.get('reason')?.trim() || undefined;
  const read = DecideApproval.safeParse({ decision: form.get('decision'), ...(reason !== undefined && { reason }) });
  if (read.success) return read.data;
  const violations = read.error.issues.map(({ path: [field], message }) => ({
    field: String(field),
    description: message,
  }));
  throw new RialtoError('invalid_params', {
    message: `${violations[0]!.field}: ${violations[0]!.description}`,
    violations,
  });
}

function sendPage(response: DoorResponse, status: number, html: string): void {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': pagePolicy,
    'X-Frame-Options': 'DENY',
    'X-Content-Type-Options': 'nosniff',
    // With `no-referrer`, browsers send the form with `Origin: null`.
    'Referrer-Policy': 'same-origin',
    'Cache-Control': 'no-store',
  });
  response.end(html);
}
