import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { questionsOf, toolResultOf } from '../../continuations/tool-task.types.js';
import type { Part } from '../../protocol/a2a/model.js';
import { decodeBridgeReply, toolOutput } from '../../protocol/a2a/remote/bridge-call.js';
import { dialects } from '../../protocol/a2a/dialects.js';
import { failedStates, interruptedStates, terminalStates, wordOf, type TaskState } from '../../protocol/a2a/states.js';
import { containsUnstorable, unstorable } from '../../protocol/jsonrpc.js';
import { declaresTasks } from '../../protocol/mcp/server-task.js';
import { toolResult, type ToolResult } from '../../protocol/mcp/tool-result.js';
import { failureOf, taskView, wordsOf, type StoredTask } from '../../tasks/task.types.js';

/*
 * Tasks of ours as those of the MCP extension `io.modelcontextprotocol/tasks` (specification 2026-07-28), and as results of tools. Pure.
 */

const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const pollIntervalMs = 2_000;
const dayMs = 86_400_000;

type McpStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** What a call came to at last. */
export type CallEnd = { readonly result: ToolResult | JsonObject } | { readonly error: JsonObject };

/** In place of a result, for clients that declare the extension: the call goes on as a task. */
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

/** True when the params of a request of the 2026-07-28 revision say that its client takes tasks. */
export function takesTasks(params: unknown): boolean {
  const meta = isJsonObject(params) ? params._meta : undefined;
  const capabilities = isJsonObject(meta) ? meta[capabilitiesKey] : undefined;
  return isJsonObject(capabilities) && declaresTasks(capabilities);
}

export function handleOf(task: StoredTask, retentionDays: number): TaskHandle {
  return { resultType: 'task', ...taskFacts(task, retentionDays) };
}

/** The whole of a task for `tasks/get`. @param outcome what the call gave, for an ended one. */
export function detailOf(task: StoredTask, retentionDays: number, outcome: CallEnd | undefined): JsonObject {
  const facts = { ...taskFacts(task, retentionDays) } as unknown as JsonObject;
  if (outcome) return { ...facts, ...outcome } as unknown as JsonObject;
  if (!interruptedStates.has(task.state)) return facts;
  return { ...facts, inputRequests: questionsOf(task.statusMessage) ?? { [questionOf(task)]: asking(task) } };
}

/** What `tasks/update` says, for the next message of the task; nothing where none of it is about what the task asks. Throws `invalid_params`. */
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

/** The name of the question that a task waits with: another for each. */
function questionOf({ seq }: Pick<StoredTask, 'seq'>): string {
  return `question-${seq}`;
}

/** What the answer to a question says; undefined for a declined one. Throws `invalid_params` for what is no answer. */
function answerIn(response: Json | undefined): string | undefined {
  if (!isJsonObject(response) || typeof response.action !== 'string')
    throw new RialtoError('invalid_params', { message: 'inputResponses holds results of elicitation/create' });
  if (response.action !== 'accept') return undefined;
  const answer = isJsonObject(response.content) ? response.content.answer : undefined;
  if (typeof answer === 'string' && answer !== '') return answer;
  throw new RialtoError('invalid_params', { message: 'the answer is a text' });
}

/** What the call of an adopted task would have given if its caller had waited. Throws what the failure of the task means. */
export function adoptedResult(task: StoredTask): ToolResult {
  const { id: taskId, state } = task;
  if (failedStates.has(state)) throw failureOf(task);
  if (!terminalStates.has(state)) return goingOn(task);
  const operation = { name: 'GetTask', params: { id: taskId } } as const;
  const result = dialects['1.0'].encodeResult(operation, taskView(task, { historyLength: 0 }));
  const envelope = JSON.stringify({ jsonrpc: '2.0', id: 0, result });
  return toolResult(toolOutput(decodeBridgeReply(envelope, { status: 200, requestId: 0 })));
}

/** The same for a task of an MCP server, whose result is unchanged. */
export function keptResult(task: StoredTask): ToolResult | JsonObject {
  return terminalStates.has(task.state) ? toolResultOf(task) : goingOn(task);
}

/** In place of the result of a call whose task goes on, or waits for its caller. */
export function goingOn({ id: taskId, contextId, state, statusMessage }: StoredTask): ToolResult {
  const message =
    wordsOf(statusMessage) || 'It is still under way. Ask again with the tool task_status and this taskId.';
  return toolResult({ taskId, contextId, state: wordOf(state), message });
}

function taskFacts(task: StoredTask, retentionDays: number): Omit<TaskHandle, 'resultType'> {
  const words = wordsOf(task.statusMessage);
  return {
    taskId: task.id,
    status: statusOf(task.state),
    ...(words !== '' && { statusMessage: words }),
    createdAt: new Date(madeAt(task.id)).toISOString(),
    lastUpdatedAt: new Date(task.statusAt).toISOString(),
    ttlMs: retentionDays * dayMs,
    pollIntervalMs,
  };
}

/** A rejected task is one that failed with an error; its result tells so. */
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

/** Ids of tasks begin with the time they were made (RFC 9562 section 5.7). */
function madeAt(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16);
}
