import type { DoorRequest, DoorResponse } from '../http.types.js';
import { isAllowedOrigin, type Reachable } from './origin-check.js';

/** Response headers that a page may read. */
const exposed = [
  'Mcp-Session-Id',
  'WWW-Authenticate',
  'A2A-Version',
  'A2A-Extensions',
  'X-Request-Id',
  'Retry-After',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Idempotent-Replayed',
].join(', ');
const maxAgeSeconds = 600;
const headerNames = /^[\w!#$%&'*+.^`|~-]{1,64}(?: *, *[\w!#$%&'*+.^`|~-]{1,64}){0,49}$/;

/**
 * Allows pages of the permitted origins to read the answers of a door (Fetch standard, CORS protocol). Cookies are
 * not allowed: pages send their own credential. Returns true when the request was a preflight, which is then
 * answered.
 */
export function answerCors(
  request: DoorRequest,
  response: DoorResponse,
  methods: readonly string[],
  reachable: Reachable,
): boolean {
  const { origin } = request.headers;
  if (origin === undefined) return false;
  response.setHeader('Vary', 'Origin');
  if (!isAllowedOrigin(request.headers, reachable)) return false;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', exposed);
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false;
  const requestedHeaders = request.headers['access-control-request-headers'];
  response
    .writeHead(204, {
      'Access-Control-Allow-Methods': methods.join(', '),
      ...(requestedHeaders !== undefined &&
        headerNames.test(requestedHeaders) && { 'Access-Control-Allow-Headers': requestedHeaders }),
      'Access-Control-Max-Age': String(maxAgeSeconds),
    })
    .end();
  return true;
}
