import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { whenAnswered, whenGone } from '../../platform/http/caller-gone.js';
import type { DoorResponse } from '../../platform/http/http.types.js';

/** The connection state of the client that asks for a task. */
export interface LeaseCaller {
  /** Aborts when the client disconnects before it is answered. */
  readonly gone: AbortSignal;
  /** Resolves to true when the answer was sent in full, to false when it was not. */
  readonly answered: Promise<boolean>;
}

export const Caller = createParamDecorator((_data: unknown, host: ExecutionContext): LeaseCaller => {
  const response = host.switchToHttp().getResponse<DoorResponse>();
  return { gone: whenGone(response)(), answered: whenAnswered(response) };
});
