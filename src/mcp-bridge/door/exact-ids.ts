import { randomUUID } from 'node:crypto';
import type { McpHttpHandler } from '@modelcontextprotocol/server';
import { isJsonObject, type Json } from '../../kernel/json.js';

/**
 * Wraps a handler of the SDK, which refuses integers beyond 2^53 as the id or the progress token of a request. It gets
 * random texts in their place, and the integers are put back into its answer.
 */
export function withExactIds(handler: McpHttpHandler): Pick<McpHttpHandler, 'fetch'> {
  return {
    fetch: async (request, options) => {
      const standIns = new Map<string, Json>();
      const parsedBody = withStandIns(options?.parsedBody, standIns);
      const answer = await handler.fetch(request, { ...options, parsedBody });
      if (standIns.size === 0 || !answer.body) return answer;
      const { status, statusText, headers } = answer;
      return new Response(answer.body.pipeThrough(restoring(standIns)), { status, statusText, headers });
    },
  };
}

/** Returns the body with texts as its id and progress token where they are integers beyond 2^53. */
function withStandIns(body: unknown, standIns: Map<string, Json>): unknown {
  if (!isJsonObject(body)) return body;
  const standInFor = (value: Json): Json => {
    if (typeof value !== 'bigint' && (!Number.isInteger(value) || Number.isSafeInteger(value))) return value;
    const text = randomUUID();
    standIns.set(text, value);
    return text;
  };
  const copy = { ...body };
  if ('id' in copy) copy.id = standInFor(copy.id);
  const meta = isJsonObject(copy.params) ? copy.params._meta : undefined;
  if (isJsonObject(meta) && 'progressToken' in meta)
    copy.params = { ...(copy.params as object), _meta: { ...meta, progressToken: standInFor(meta.progressToken) } };
  return copy;
}

/** Replaces the texts in the JSON of an answer. The SDK writes each message in one chunk. */
function restoring(standIns: ReadonlyMap<string, Json>): TransformStream<Uint8Array<ArrayBuffer>> {
  return new TransformStream({
    transform(chunk, controller) {
      // Latin-1 keeps each byte as it is.
      let text = Buffer.from(chunk).toString('latin1');
      for (const [standIn, value] of standIns) text = text.replaceAll(`"${standIn}"`, JSON.stringify(value));
      controller.enqueue(Buffer.from(text, 'latin1'));
    },
  });
}
