import type { ServerResponse } from 'node:http';
import type { CallLimit } from '../../kernel/call-context.js';

/** Says in the headers of an answer what is left of a limit (IETF draft "RateLimit header fields for HTTP"); too late once it has begun. */
export function limitHeaders(response: ServerResponse): (limit: CallLimit) => void {
  return ({ limit, remaining, secondsLeft }) => {
    if (response.headersSent) return;
    response.setHeader('RateLimit-Limit', limit);
    response.setHeader('RateLimit-Remaining', remaining);
    response.setHeader('RateLimit-Reset', secondsLeft);
    if (remaining === 0) response.setHeader('Retry-After', secondsLeft);
  };
}
