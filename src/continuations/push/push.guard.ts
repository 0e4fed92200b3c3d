import { createParamDecorator, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import type { DoorRequest } from '../../platform/http/http.types.js';
import { PushTokens, type PushKey } from './push-tokens.js';

interface PushRequest extends DoorRequest {
  readonly params: Readonly<Record<string, string>>;
  pushedFor?: PushKey;
}

/** Accepts a request with a valid token of a task before the body is read. Throws `unauthenticated`. */
@Injectable()
export class PushGuard implements CanActivate {
  constructor(private readonly tokens: PushTokens) {}

  canActivate(host: ExecutionContext): boolean {
    const request = host.switchToHttp().getRequest<PushRequest>();
    request.pushedFor = this.tokens.openToken(request.params.token ?? '');
    if (!request.pushedFor) throw new RialtoError('unauthenticated');
    return true;
  }
}

/** Ids of the task that the token of the request belongs to. */
export const PushedFor = createParamDecorator((_data: unknown, host: ExecutionContext): PushKey => {
  const { pushedFor } = host.switchToHttp().getRequest<PushRequest>();
  if (!pushedFor) throw new RialtoError('unauthenticated');
  return pushedFor;
});
