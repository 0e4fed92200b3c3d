import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, storableText, type JsonObject } from '../../kernel/json.js';

/*
 * Tasks at MCP servers: the extension `io.modelcontextprotocol/tasks` of the 2026-07-28 revision (ext-tasks, specification/2026-07-28). Pure.
 */

export const tasksExtension = 'io.modelcontextprotocol/tasks';

const statuses = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;

/** What a server says of a task: its handle, or the whole of it. */
export interface ServerTask {
  readonly taskId: string;
  readonly status: (typeof statuses)[number];
  readonly statusMessage?: string;
  /** For how long the server wants not to be asked again. */
  readonly pollIntervalMs?: number;
  /** Of a completed one, as the call would have given it. */
  readonly result?: JsonObject;
  /** Of a failed one: the JSON-RPC error of the call. */
  readonly error?: JsonObject;
  /** What has to be answered before it goes on, by the names that the server gave. */
  readonly inputRequests?: JsonObject;
}

/** Whether somebody who has these capabilities takes tasks, or answers by them. */
export function declaresTasks({ extensions }: JsonObject): boolean {
  return isJsonObject(extensions) && isJsonObject(extensions[tasksExtension]);
}

/** Reads a handle, or an answer of `tasks/get`. Throws `remote_invalid_response`. */
export function readServerTask(said: JsonObject): ServerTask {
  const { taskId, status, statusMessage, pollIntervalMs, result, error, inputRequests } = said;
  const known = statuses.find((one) => one === status);
  const isNamed = typeof taskId === 'string' && taskId !== '' && storableText(taskId, longestId) === taskId;
  if (!known || !isNamed)
    throw new RialtoError('remote_invalid_response', { message: 'the MCP server answered no task' });
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
