import type { JsonObject } from '../../kernel/json.js';
import { retryAfterMs } from '../../kernel/retry-after.js';

const pauses = [500, 2_000, 5_000];
const passing = new Set([408, 425, 429]);
/** With these a server says that it does not take a request as it is. */
const refusing = new Set([400, 404, 405, 422, 501]);

/** How a try ended: with a status, or without one. */
export interface ModelTry {
  readonly status?: number;
  /** The header `Retry-After`. */
  readonly retryAfter?: string;
}

/** Milliseconds until the next try; undefined when there is none, or none in time. @param attempt of the try that ended, from 1. Pure. */
export function pauseBefore(
  attempt: number,
  { status, retryAfter }: ModelTry,
  { now, leftMs }: { now: number; leftMs: number },
): number | undefined {
  if (status !== undefined && status < 500 && !passing.has(status)) return undefined;
  const usual = pauses[attempt - 1];
  if (usual === undefined) return undefined;
  const pause = retryAfterMs(retryAfter, now) ?? usual;
  return pause < leftMs ? pause : undefined;
}

/**
 * A request without the member that its server refused, by the words of the refusal; undefined when there is none to leave out. Servers
 * differ in what they know: the count of a stream, streams, tools, temperatures, and how the limit of an answer is called. Pure.
 */
export function lessDemanding(request: JsonObject, status: number, said: string): JsonObject | undefined {
  if (!refusing.has(status)) return undefined;
  const has = (member: string): boolean => request[member] !== undefined;
  if (has('max_tokens') && /max_completion_tokens/.test(said)) {
    const { max_tokens: limit, ...rest } = request;
    return { ...rest, max_completion_tokens: limit! };
  }
  if (has('stream_options') && /stream_options|include_usage/i.test(said)) return without(request, 'stream_options');
  if (has('stream') && /stream/i.test(said)) return without(request, 'stream', 'stream_options');
  if (has('tools') && /\btools?\b|function.call/i.test(said)) return without(request, 'tools');
  return has('temperature') && /temperature/i.test(said) ? without(request, 'temperature') : undefined;
}

function without(request: JsonObject, ...members: string[]): JsonObject {
  return Object.fromEntries(Object.entries(request).filter(([name]) => !members.includes(name)));
}
