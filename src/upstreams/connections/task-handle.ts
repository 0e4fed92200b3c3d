import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { readServerTask, tasksExtension, type ServerTask } from '../../protocol/mcp/server-task.js';

/** The SDK takes no result that is a task: its handle travels inside of a complete one. */
export function wrapTask(message: JSONRPCMessage): JSONRPCMessage {
  if (!('result' in message) || message.result.resultType !== 'task') return message;
  return { ...message, result: { resultType: 'complete', content: [], [tasksExtension]: message.result } };
}

/** The task that a server answered with in place of a result. Throws `remote_invalid_response` for what is none. */
export function taskIn(answer: JsonObject): ServerTask | undefined {
  const handle = answer[tasksExtension];
  return isJsonObject(handle) ? readServerTask(handle) : undefined;
}
