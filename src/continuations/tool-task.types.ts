import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.js';
import type { Artifact, Message } from '../protocol/a2a/model.js';
import type { TaskState } from '../protocol/a2a/states.js';
import type { Said } from '../tasks/executor.port.js';
import { failureOf, wordsOf as textOf, type StoredTask } from '../tasks/task.types.js';
import type { TaskAtServer } from '../upstreams/upstream-tasks.types.js';

/** Facts about a task at an MCP server that a later run needs. */
export interface ToolTask extends TaskAtServer {
  /** Id of the server for operators, shown with the continuation. */
  readonly serverId: string;
  /** Name of the tool at the server. */
  readonly tool: string;
  readonly url: string;
  /** Names of questions that were answered. */
  readonly answered?: readonly string[];
}

/** State of a task at the server, in the model of the gateway. */
export interface Told {
  readonly state: TaskState;
  readonly message?: Said;
  readonly artifacts?: readonly Artifact[];
}

/** How a task of the gateway shows the result and the questions of its server. */
export interface ToolTaskView {
  ended(result: JsonObject): Told;
  /** Throws when no caller can answer the questions: then the task ends. */
  asks(questions: JsonObject): Said;
}

/**
 * View of the task of a stored call: keeps results and questions of the server unchanged, for callers that speak MCP.
 */
export const unchanged: ToolTaskView = {
  ended: (result) => ({
    state: 'TASK_STATE_COMPLETED',
    artifacts: [{ artifactId: 'result', parts: [{ data: result }] }],
  }),
  asks: (questions) => ({ parts: [{ text: promptOf(questions) }], metadata: { inputRequests: questions } }),
};

/** Result that the call of a stored task would have returned. Throws the error of a failed task. */
export function toolResultOf(task: StoredTask): JsonObject {
  const result = task.state === 'TASK_STATE_COMPLETED' ? task.artifacts[0]?.parts[0]?.data : undefined;
  if (!isJsonObject(result)) throw toolFailureOf(task);
  return result;
}

/** Error of a failed task, with the unchanged error of its server. Errors of other tasks are not errors of MCP. */
function toolFailureOf(task: StoredTask): RialtoError {
  const relayed = task.statusMessage?.metadata?.relayed;
  if (!isJsonObject(relayed)) return failureOf(task);
  return new RialtoError('remote_error', {
    message: textOf(task.statusMessage) || undefined,
    data: { taskId: task.id, relayed },
  });
}

/** Questions of the server in a message, in the format of the server. */
export function questionsOf(message: Message | undefined): JsonObject | undefined {
  const questions = message?.metadata?.inputRequests;
  return isJsonObject(questions) ? questions : undefined;
}

function promptOf(questions: JsonObject): string {
  const messages = Object.values(questions).map((question) =>
    textIn(isJsonObject(question) ? question.params : undefined),
  );
  return messages.join('\n') || 'The tool wants to know more.';
}

function textIn(params: Json | undefined): string {
  return isJsonObject(params) && typeof params.message === 'string' ? params.message : 'The tool wants to know more.';
}
