import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';

/*
 * Tasks of MCP servers: the extension `io.modelcontextprotocol/tasks` of revision 2026-07-28 (ext-tasks,
 * specification/2026-07-28). Pure.
 */

export const tasksExtension = 'io.modelcontextprotocol/tasks';

const statuses = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;

/** A task as its server reports it: only its handle, or all its facts. */
export interface ServerTask {
  readonly taskId: string;
  readonly status: (typeof statuses)[number];
  readonly statusMessage?: string;
  /** The server's wish: milliseconds until the next poll. */
  readonly pollIntervalMs?: number;
  /** The result of the call; only of a completed task. */
  readonly result?: JsonObject;
  /** The JSON-RPC error of the call; only of a failed task. */
  readonly error?: JsonObject;
  /** Requests that must be answered before the task continues, by the names that the server gave them. */
  readonly inputRequests?: JsonObject;
}

/** True when a peer with these capabilities supports tasks. */
export function declaresTasks({ extensions }: JsonObject): boolean {
  return isJsonObject(extensions) && isJsonObject(extensions[tasksExtension]);
}

/** Reads the handle of a task, or an answer of `tasks/get`. Throws `remote_invalid_response` when it is not a task. */
export function readServerTask(answer: JsonObject): ServerTask {
  const { taskId, status, statusMessage, pollIntervalMs, result, error, inputRequests } = answer;
  const known = statuses.find((one) => one === status);
  const isNamed = typeof taskId === 'string' && taskId !== '' && storableText(taskId, longestId) === taskId;
  if (!known || !isNamed)
    throw new RialtoError('remote_invalid_response', {
      message: 'the answer of the MCP server has no valid taskId and status',
    });
  return {
    taskId,
    status: known,
    ...(typeof statusMessage === 'string' && statusMessage !== '' && { statusMessage }),
    ...(typeof pollIntervalMs === 'number' && pollIntervalMs > 0 && { pollIntervalMs }),
    ...(isJsonObject(result) && { result }),
    ...(isJsonObject(error) && { error }),
    ...(isJsonObject(inputRequests) && { inputRequests }),
  };
}

const longestId = 1_024;
