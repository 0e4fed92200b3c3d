import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import { inTurns } from '../platform/turns.js';
import { tasksExtension } from '../protocol/mcp/server-task.js';
import { measuringDepth } from '../protocol/mcp/schema/schema-size.js';
import { metaKeys } from '../protocol/mcp/meta.js';

/** Maximum nesting depth of a result; a deeper one could overflow the stack. */
export const maxNesting = 256;

/**
 * Returns a result as its caller gets it. Removes what the 2026-07-28 revision adds to each result (type, server info,
 * caching hints), because these concern only the server and the gateway. Throws `remote_invalid_response` for a result
 * without its required member, or one that nests too deep.
 */
export async function checkedResult(given: JsonObject, kind: ResultKind): Promise<JsonObject> {
  // Official clients and SDKs read a tool result without `content` as one with an empty list.
  const answer = kind === 'tool' && (given.content ?? null) === null ? { ...given, content: [] } : given;
  const isDeep = await inTurns(measuringDepth(answer, maxNesting));
  const fault = kinds[kind](answer) ?? (isDeep && `it nests deeper than ${maxNesting}`);
  if (fault)
    throw new RialtoError('remote_invalid_response', {
      message: `the MCP server sent an invalid ${kind} result: ${fault}`,
    });
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta, ...result } = answer;
  if (!isJsonObject(_meta)) return result;
  const { [metaKeys.serverInfo]: _info, ...meta } = _meta;
  return Object.keys(meta).length === 0 ? result : { ...result, _meta: meta };
}

export type ResultKind = keyof typeof kinds;

/** Functions that return why an answer is not a valid result of their kind; undefined when it is valid. */
const kinds = {
  // A task is accepted only when the request announced it; otherwise it is an error.
  tool: (answer: JsonObject) =>
    Object.hasOwn(answer, tasksExtension)
      ? 'it is a task, but the request did not allow one'
      : listProblem(answer, 'content'),
  resource: (answer: JsonObject) => listProblem(answer, 'contents'),
  prompt: (answer: JsonObject) => listProblem(answer, 'messages'),
  completion: ({ completion }: JsonObject) =>
    isJsonObject(completion) ? listProblem(completion, 'values') : '"completion" is not an object',
};

function listProblem(owner: JsonObject, name: string): string | undefined {
  return Array.isArray(owner[name]) ? undefined : `"${name}" is not a list`;
}
