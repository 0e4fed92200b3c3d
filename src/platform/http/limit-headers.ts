import type { ServerResponse } from 'node:http';
import type { CallLimit } from '../../kernel/call-context.js';

/**
 * Writes the rest of a limit into the headers of a response (IETF draft "RateLimit header fields for HTTP"). Does
 * nothing when the headers are already sent.
 */
export function tellLeft(response: ServerResponse, { limit, remaining, secondsLeft }: CallLimit): void {
  if (response.headersSent) return;
  response.setHeader('RateLimit-Limit', limit);
  response.setHeader('RateLimit-Remaining', remaining);
  response.setHeader('RateLimit-Reset', secondsLeft);
}

/**
 * Like `tellLeft`, for a limit that allows nothing until it is full again: adds `Retry-After` when nothing remains.
 */
export function limitHeaders(response: ServerResponse): (limit: CallLimit) => void {
  return (limit) => {
    tellLeft(response, limit);
    if (limit.remaining === 0 && !response.headersSent) response.setHeader('Retry-After', limit.secondsLeft);
  };
}

/** The headers of a refusal: the seconds to wait, and for a rate limit the number of allowed requests. */
export function refusalHeaders({ retryAfterSeconds, limit }: Readonly<Record<string, unknown>> = {}): Record<
  string,
  string
> {
  if (typeof retryAfterSeconds !== 'number') return {};
  const wait = String(retryAfterSeconds);
  if (typeof limit !== 'number') return { 'Retry-After': wait };
  return { 'Retry-After': wait, 'RateLimit-Limit': String(limit), 'RateLimit-Remaining': '0', 'RateLimit-Reset': wait };
}
