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
export function resultOf(given: JsonObject, kind: ResultKind): JsonObject {
  // Official clients and SDKs take a result of a tool without `content` for one with an empty list.
  const answer = kind === 'tool' && (given.content ?? null) === null ? { ...given, content: [] } : given;
  const fault = kinds[kind](answer) ?? (isDeeperThan(answer, maxNesting) && `it nests deeper than ${maxNesting}`);
  if (fault)
    throw new RialtoError('remote_invalid_response', {
      message: `the MCP server answered no result of a ${kind}: ${fault}`,
    });
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, _meta, ...result } = answer;
  if (!isJsonObject(_meta)) return result;
  const { [serverInfoKey]: _info, ...meta } = _meta;
  return Object.keys(meta).length === 0 ? result : { ...result, _meta: meta };
}

export type ResultKind = keyof typeof kinds;

/** Why an answer is no result of its kind; undefined where it is one. */
const kinds = {
  // A task that nobody takes is none.
  tool: (answer: JsonObject) =>
    Object.hasOwn(answer, tasksExtension) ? 'it is a task, which was not asked for' : unlessList(answer, 'content'),
  resource: (answer: JsonObject) => unlessList(answer, 'contents'),
  prompt: (answer: JsonObject) => unlessList(answer, 'messages'),
  completion: ({ completion }: JsonObject) =>
    isJsonObject(completion) ? unlessList(completion, 'values') : 'completion is no object',
};

function unlessList(owner: JsonObject, name: string): string | undefined {
  return Array.isArray(owner[name]) ? undefined : `${name} is no list`;
}
