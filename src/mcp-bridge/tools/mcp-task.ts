import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { questionsOf, toolResultOf } from '../../continuations/tool-task.types.js';
import type { Part } from '../../protocol/a2a/model.js';
import { decodeBridgeReply, toolOutput } from '../../protocol/a2a/remote/bridge-call.js';
import { dialects } from '../../protocol/a2a/dialects.js';
import { failedStates, interruptedStates, terminalStates, wordOf, type TaskState } from '../../protocol/a2a/states.js';
import { containsUnstorable, parseJson, unstorable } from '../../protocol/jsonrpc.js';
import { declaresTasks } from '../../protocol/mcp/server-task.js';
import { toolResult, type ToolResult } from '../../protocol/mcp/tool-result.js';
import { failureOf, taskView, wordsOf, type StoredTask } from '../../tasks/task.types.js';
import { metaKeys } from '../../protocol/mcp/meta.js';

// Shows tasks of the gateway as tasks of the MCP extension `io.modelcontextprotocol/tasks` (specification 2026-07-28),
// and as results of tools. Pure.

const pollIntervalMs = 2_000;
const dayMs = 86_400_000;

type McpStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** The final outcome of a call. */
export type CallEnd = { readonly result: ToolResult | JsonObject } | { readonly error: JsonObject };

/** Replaces a result for clients that declare the extension: the call continues as a task. */
export interface TaskHandle {
  readonly resultType: 'task';
  readonly taskId: string;
  readonly status: McpStatus;
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
}

/** True when the params of a request of the 2026-07-28 revision state that the client takes tasks. */
export function takesTasks(params: unknown): boolean {
  const meta = isJsonObject(params) ? params._meta : undefined;
  const capabilities = isJsonObject(meta) ? meta[metaKeys.clientCapabilities] : undefined;
  return isJsonObject(capabilities) && declaresTasks(capabilities);
}

export function handleOf(task: StoredTask, retentionDays: number): TaskHandle {
  return { resultType: 'task', ...taskFacts(task, retentionDays) };
}

/**
 * Returns the complete task for `tasks/get`.
 * @param outcome outcome of the call, for a task that ended.
 */
export function detailOf(task: StoredTask, retentionDays: number, outcome: CallEnd | undefined): JsonObject {
  const facts = { ...taskFacts(task, retentionDays) } as unknown as JsonObject;
  if (outcome) return { ...facts, ...outcome } as unknown as JsonObject;
  if (!interruptedStates.has(task.state)) return facts;
  return { ...facts, inputRequests: questionsOf(task.statusMessage) ?? { [questionOf(task)]: asking(task) } };
}

/**
 * Converts the params of `tasks/update` to a part for the next message of the task; `none` when they contain no answer
 * to the task's question. Throws `invalid_params`.
 */
export function partIn(task: StoredTask, responses: JsonObject): Part | 'none' | 'declined' {
  if (containsUnstorable(responses))
    throw new RialtoError('invalid_params', { message: `inputResponses ${unstorable}` });
  const questions = questionsOf(task.statusMessage);
  if (questions) {
    const inputResponses = Object.fromEntries(
      Object.entries(responses).filter(([name]) => Object.hasOwn(questions, name)),
    );
    return Object.keys(inputResponses).length === 0 ? 'none' : { data: { inputResponses } };
  }
  const question = questionOf(task);
  if (!Object.hasOwn(responses, question)) return 'none';
  const text = answerIn(responses[question]);
  return text === undefined ? 'declined' : { text };
}

/** Returns the name of the task's current question; each question has another name. */
function questionOf({ seq }: Pick<StoredTask, 'seq'>): string {
  return `question-${seq}`;
}

/**
 * Returns the text of the answer to a question; undefined for a declined one. Throws `invalid_params` for a malformed
 * answer.
 */
function answerIn(response: Json | undefined): string | undefined {
  if (!isJsonObject(response) || typeof response.action !== 'string')
    throw new RialtoError('invalid_params', { message: 'inputResponses must contain results of elicitation/create' });
  if (response.action !== 'accept') return undefined;
  const answer = isJsonObject(response.content) ? response.content.answer : undefined;
  if (typeof answer === 'string' && answer !== '') return answer;
  throw new RialtoError('invalid_params', { message: 'the answer must be a text' });
}

/**
 * Returns the result that the call of an adopted task would have given to a waiting caller. Throws the meaning of a
 * failed task.
 */
export function adoptedResult(task: StoredTask): ToolResult {
  const { id: taskId, state } = task;
  if (failedStates.has(state)) throw failureOf(task);
  if (!terminalStates.has(state)) return goingOn(task);
  const operation = { name: 'GetTask', params: { id: taskId } } as const;
  const result = dialects['1.0'].encodeResult(operation, taskView(task, { historyLength: 0 }));
  const envelope = JSON.stringify({ jsonrpc: '2.0', id: 0, result });
  return toolResult(toolOutput(decodeBridgeReply(parseJson(envelope), { status: 200, requestId: 0 })));
}

/** Returns the same for a task of an MCP server, with its result unchanged. */
export function keptResult(task: StoredTask): ToolResult | JsonObject {
  return terminalStates.has(task.state) ? toolResultOf(task) : goingOn(task);
}

/** Returns the result for a call with a task that continues, or that waits for its caller. */
export function goingOn({ id: taskId, contextId, state, statusMessage }: StoredTask): ToolResult {
  const message =
    wordsOf(statusMessage) || 'The task is still running. Ask again with the tool task_status and this taskId.';
  return toolResult({ taskId, contextId, state: wordOf(state), message });
}

function taskFacts(task: StoredTask, retentionDays: number): Omit<TaskHandle, 'resultType'> {
  const words = wordsOf(task.statusMessage);
  return {
    taskId: task.id,
    status: statusOf(task.state),
    ...(words !== '' && { statusMessage: words }),
    createdAt: new Date(createdAtOf(task.id)).toISOString(),
    lastUpdatedAt: new Date(task.statusAt).toISOString(),
    ttlMs: retentionDays * dayMs,
    pollIntervalMs,
  };
}

/** Returns the status for MCP. A rejected task counts as failed; its result contains the error. */
function statusOf(state: TaskState): McpStatus {
  if (state === 'TASK_STATE_COMPLETED') return 'completed';
  if (state === 'TASK_STATE_CANCELED') return 'cancelled';
  if (failedStates.has(state)) return 'failed';
  return interruptedStates.has(state) ? 'input_required' : 'working';
}

function asking(task: StoredTask): JsonObject {
  const message = wordsOf(task.statusMessage) || 'The agent waits for an answer.';
  const answer = { type: 'string', title: 'Answer' };
  const requestedSchema = { type: 'object', properties: { answer }, required: ['answer'] };
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } };
}

/** Reads the creation time from a task id, which begins with it (RFC 9562 section 5.7). */
function createdAtOf(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16);
}
