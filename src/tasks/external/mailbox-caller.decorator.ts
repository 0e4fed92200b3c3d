import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { whenAnswered, whenGone } from '../../platform/http/caller-gone.js';
import type { DoorResponse } from '../../platform/http/http.types.js';

/** How it goes with the client that asks for a task. */
export interface LeaseCaller {
  /** Aborts when the client goes away before it is answered. */
  readonly gone: AbortSignal;
  /** Resolves once it is settled whether the answer has left in full. */
  readonly answered: Promise<boolean>;
}

export const Caller = createParamDecorator((_data: unknown, host: ExecutionContext): LeaseCaller => {
  const response = host.switchToHttp().getResponse<DoorResponse>();
  return { gone: whenGone(response)(), answered: whenAnswered(response) };
});
