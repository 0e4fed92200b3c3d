import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { whenGone } from '../platform/http/caller-gone.js';
import type { DoorResponse } from '../platform/http/http.types.js';

/** A signal that aborts when the client goes away before it is answered. */
export const Gone = createParamDecorator((_data: unknown, host: ExecutionContext): AbortSignal => {
  return whenGone(host.switchToHttp().getResponse<DoorResponse>())();
});
