import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.js';
import type { Artifact, Message } from '../protocol/a2a/model.js';
import type { TaskState } from '../protocol/a2a/states.js';
import type { Said } from '../tasks/executor.port.js';
import { failureOf, wordsOf as textOf, type StoredTask } from '../tasks/task.types.js';
import type { TaskAtServer } from '../upstreams/upstream-tasks.types.js';

/** What a later run has to know of a task at an MCP server. */
export interface ToolTask extends TaskAtServer {
  /** Where it is, for whoever looks after continuations. */
  readonly serverId: string;
  /** As the server knows it. */
  readonly tool: string;
  readonly url: string;
  /** Names of questions that were answered. */
  readonly answered?: readonly string[];
}

/** What a server says of its task, in the words of the model. */
export interface Told {
  readonly state: TaskState;
  readonly message?: Said;
  readonly artifacts?: readonly Artifact[];
}

/** How a task of ours tells what its server gave and asks. */
export interface ToolTaskView {
  ended(result: JsonObject): Told;
  /** Throws for what nobody can be asked: then the task ends. */
  asks(questions: JsonObject): Said;
}

/** The task of a call that was kept: it holds what its server says unchanged, for callers who speak its protocol. */
export const unchanged: ToolTaskView = {
  ended: (result) => ({
    state: 'TASK_STATE_COMPLETED',
    artifacts: [{ artifactId: 'result', parts: [{ data: result }] }],
  }),
  asks: (questions) => ({ parts: [{ text: wordsOf(questions) }], metadata: { inputRequests: questions } }),
};

/** What the call of a kept task would have given. Throws what the failure of the task means. */
export function toolResultOf(task: StoredTask): JsonObject {
  const result = task.state === 'TASK_STATE_COMPLETED' ? task.artifacts[0]?.parts[0]?.data : undefined;
  if (!isJsonObject(result)) throw toolFailureOf(task);
  return result;
}

/** With the error of its server unchanged: of no other task is it one of the protocol. */
function toolFailureOf(task: StoredTask): RialtoError {
  const relayed = task.statusMessage?.metadata?.relayed;
  if (!isJsonObject(relayed)) return failureOf(task);
  return new RialtoError('remote_error', {
    message: textOf(task.statusMessage) || undefined,
    data: { taskId: task.id, relayed },
  });
}

/** The questions of the task of a server that a message asks, as the server has them. */
export function questionsOf(message: Message | undefined): JsonObject | undefined {
  const questions = message?.metadata?.inputRequests;
  return isJsonObject(questions) ? questions : undefined;
}

function wordsOf(questions: JsonObject): string {
  const messages = Object.values(questions).map((question) =>
    textIn(isJsonObject(question) ? question.params : undefined),
  );
  return messages.join('\n') || 'The tool wants to know more.';
}

function textIn(params: Json | undefined): string {
  return isJsonObject(params) && typeof params.message === 'string' ? params.message : 'The tool wants to know more.';
}
