import type { IncomingMessage } from 'node:http';
import { createParamDecorator, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid, type AgentId } from '../../kernel/ids.js';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { ContextService } from '../../policy/context.service.js';
import { ExecutorSecrets } from '../../registry/executor-secrets.js';
import { PublishedService } from '../../registry/published.service.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { workerFor } from '../task-verbs.js';
import { isSameSecret } from '../../platform/secrets/same-secret.js';

/** The sender of a lease request: the bearer of an agent's mailbox secret, or a caller with a credential of an org. */
export type Holder = { readonly agent: PublishedAgent } | { readonly ctx: CallContext };

interface LeaseRequest extends DoorRequest {
  holder?: Holder;
}

const shape = /^Bearer (mbx_([0-9a-f-]{36})_[A-Za-z0-9_-]{43})$/i;

/** Admits the worker of a mailbox by the secret of its agent, which gives no other access, and callers of an org. */
@Injectable()
export class MailboxGuard implements CanActivate {
  constructor(
    private readonly published: PublishedService,
    private readonly secrets: ExecutorSecrets,
    private readonly contexts: ContextService,
  ) {}

  async canActivate(host: ExecutionContext): Promise<boolean> {
    const request = host.switchToHttp().getRequest<LeaseRequest>();
    const agent = await this.agentOfSecret(request);
    if (agent) this.contexts.admit(workerFor(agent, request.requestId));
    request.holder = agent ? { agent } : { ctx: await this.contexts.openContext(request, 'rest') };
    return true;
  }

  private async agentOfSecret({ headersDistinct }: Pick<IncomingMessage, 'headersDistinct'>) {
    const [header = '', second] = headersDistinct.authorization ?? [];
    const [, given, id = ''] = (second === undefined && shape.exec(header)) || [];
    if (given === undefined || !isUuid(id)) return undefined;
    const agent = await this.published.byId(id as AgentId);
    const secret = agent?.executor.kind === 'mailbox' ? (await this.secrets.secretsOf(agent.id)).secret : undefined;
    return secret && isSameSecret(given, secret.reveal()) ? agent : undefined;
  }
}

/** The holder that the guard admitted. */
export const HeldBy = createParamDecorator((_data: unknown, host: ExecutionContext): Holder => {
  const { holder } = host.switchToHttp().getRequest<LeaseRequest>();
  if (!holder) throw new RialtoError('unauthenticated');
  return holder;
});
