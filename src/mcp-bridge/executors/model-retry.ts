import type { JsonObject } from '../../kernel/json.js';
import { retryAfterMs } from '../../kernel/backoff.js';

const pauses = [500, 2_000, 5_000];
const temporary = new Set([408, 425, 429]);
/** Statuses with which a server refuses the form of a request. */
const refusing = new Set([400, 404, 405, 422, 501]);

/** The end of a try: with a status, or without one. */
export interface ModelTry {
  readonly status?: number;
  /** Value of the header `Retry-After`. */
  readonly retryAfter?: string;
}

/**
 * Returns the milliseconds until the next try; undefined when there is none, or none in time. Pure.
 * @param attempt number of the try that ended, from 1.
 */
export function pauseBefore(
  attempt: number,
  { status, retryAfter }: ModelTry,
  { now, leftMs }: { now: number; leftMs: number },
): number | undefined {
  if (status !== undefined && status < 500 && !temporary.has(status)) return undefined;
  const usual = pauses[attempt - 1];
  if (usual === undefined) return undefined;
  const pause = retryAfterMs(retryAfter, now) ?? usual;
  return pause < leftMs ? pause : undefined;
}

/**
 * Returns the request without the member that its server refused, according to the text of the refusal; undefined when
 * there is nothing to remove. Servers differ in their support for token counts of a stream, streams, tools,
 * temperatures, and in the name of the answer limit. Pure.
 */
export function lessDemanding(request: JsonObject, status: number, refusalText: string): JsonObject | undefined {
  if (!refusing.has(status)) return undefined;
  const has = (member: string): boolean => request[member] !== undefined;
  if (has('max_tokens') && /max_completion_tokens/.test(refusalText)) {
    const { max_tokens: limit, ...rest } = request;
    return { ...rest, max_completion_tokens: limit! };
  }
  if (has('stream_options') && /stream_options|include_usage/i.test(refusalText))
    return without(request, 'stream_options');
  if (has('stream') && /stream/i.test(refusalText)) return without(request, 'stream', 'stream_options');
  if (has('tools') && /\btools?\b|function.call/i.test(refusalText)) return without(request, 'tools');
  return has('temperature') && /temperature/i.test(refusalText) ? without(request, 'temperature') : undefined;
}

function without(request: JsonObject, ...members: string[]): JsonObject {
  return Object.fromEntries(Object.entries(request).filter(([name]) => !members.includes(name)));
}
