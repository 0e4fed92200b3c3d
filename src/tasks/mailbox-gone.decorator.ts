import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { DoorResponse } from '../platform/http/http.types.js';

/** A signal that aborts when the client goes away before it is answered. */
export const Gone = createParamDecorator((_data: unknown, host: ExecutionContext): AbortSignal => {
  const response = host.switchToHttp().getResponse<DoorResponse>();
  const gone = new AbortController();
  response.once('close', () => response.writableFinished || gone.abort());
  return gone.signal;
});
