import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { DoorRequest } from './http.types.js';

/** The call context that the guard made from the credential. */
export const Ctx = createParamDecorator((_data: unknown, host: ExecutionContext): CallContext => {
  const { ctx } = host.switchToHttp().getRequest<DoorRequest>();
  if (!ctx) throw new RialtoError('unauthenticated');
  return ctx;
});
