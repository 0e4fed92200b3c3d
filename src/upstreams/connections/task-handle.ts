import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { readServerTask, tasksExtension, type ServerTask } from '../../protocol/mcp/server-task.js';

/** Wraps a task result into a complete result, because the SDK accepts no task as a result. */
export function wrapTask(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message) || message.result.resultType !== 'task') return message;
  return { ...message, result: { resultType: 'complete', content: [], [tasksExtension]: message.result } };
}

/** Returns the task that a server sent in place of a result. Throws `remote_invalid_response` for an invalid task. */
export function taskIn(answer: JsonObject): ServerTask | undefined {
  const handle = answer[tasksExtension];
  return isJsonObject(handle) ? readServerTask(handle) : undefined;
}
