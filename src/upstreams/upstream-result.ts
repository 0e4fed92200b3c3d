import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import { tasksExtension } from '../protocol/mcp/server-task.js';
import { isDeeperThan } from '../protocol/mcp/schema-size.js';

/** What nests deeper ends nobody's stack. */
export const maxNesting = 256;
const serverInfoKey = 'io.modelcontextprotocol/serverInfo';

/**
 * A result as its caller gets it: what the 2026-07-28 revision adds to each (its type, who answers, for how long it may be kept) is
 * between its server and us. Throws `remote_invalid_response` for one without what its kind must have, or that nests too deep.
 */
export function resultOf(answer: JsonObject, kind: ResultKind): JsonObject {
  if (!kinds[kind](answer) || isDeeperThan(answer, maxNesting))
    throw new RialtoError('remote_invalid_response', { message: `the MCP server answered no result of a ${kind}` });
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta, ...result } = answer;
  if (!isJsonObject(_meta)) return result;
  const { [serverInfoKey]: _info, ...meta } = _meta;
  return Object.keys(meta).length === 0 ? result : { ...result, _meta: meta };
}

export type ResultKind = keyof typeof kinds;

const kinds = {
  // A task that nobody takes is none.
  tool: (answer: JsonObject): boolean => Array.isArray(answer.content) && !Object.hasOwn(answer, tasksExtension),
  resource: ({ contents }: JsonObject): boolean => Array.isArray(contents),
  prompt: ({ messages }: JsonObject): boolean => Array.isArray(messages),
  completion: ({ completion }: JsonObject): boolean => isJsonObject(completion) && Array.isArray(completion.values),
};
