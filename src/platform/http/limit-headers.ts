import type { ServerResponse } from 'node:http';
import type { CallLimit } from '../../kernel/call-context.js';

/** Says in the headers of an answer what is left of a limit (IETF draft "RateLimit header fields for HTTP"); too late once it has begun. */
export function tellLeft(response: ServerResponse, { limit, remaining, secondsLeft }: CallLimit): void {
  if (response.headersSent) return;
  response.setHeader('RateLimit-Limit', limit);
  response.setHeader('RateLimit-Remaining', remaining);
  response.setHeader('RateLimit-Reset', secondsLeft);
}

/** The same of a limit that gives nothing until all of it is there again. */
export function limitHeaders(response: ServerResponse): (limit: CallLimit) => void {
  return (limit) => {
    tellLeft(response, limit);
    if (limit.remaining === 0 && !response.headersSent) response.setHeader('Retry-After', limit.secondsLeft);
  };
}

/** The headers of a refusal that names the seconds to wait, and of a limit how many requests it lets through. */
export function refusalHeaders({ retryAfterSeconds, limit }: Readonly<Record<string, unknown>> = {}): Record<
  string,
  string
> {
  if (typeof retryAfterSeconds !== 'number') return {};
  const wait = String(retryAfterSeconds);
  if (typeof limit !== 'number') return { 'Retry-After': wait };
  return { 'Retry-After': wait, 'RateLimit-Limit': String(limit), 'RateLimit-Remaining': '0', 'RateLimit-Reset': wait };
}
