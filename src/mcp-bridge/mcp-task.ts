import { errorCodes, RialtoError, type ErrorCode } from '../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.js';
import { decodeBridgeReply, toolOutput } from '../protocol/a2a/bridge-call.js';
import { dialects } from '../protocol/a2a/dialect.js';
import { failedStates, interruptedStates, terminalStates, wordOf, type TaskState } from '../protocol/a2a/states.js';
import { toolResult, type ToolResult } from '../protocol/mcp/tool-result.js';
import { taskView, type StoredTask } from '../tasks/task.types.js';

/*
 * Tasks of ours as those of the MCP extension `io.modelcontextprotocol/tasks` (specification 2026-07-28), and as results of tools. Pure.
 */

export const tasksExtension = 'io.modelcontextprotocol/tasks';
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const pollIntervalMs = 2_000;
const dayMs = 86_400_000;

type McpStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

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
  const extensions = isJsonObject(capabilities) ? capabilities.extensions : undefined;
  return isJsonObject(extensions) && isJsonObject(extensions[tasksExtension]);
}

export function handleOf(task: StoredTask, retentionDays: number): TaskHandle {
  return { resultType: 'task', ...taskFacts(task, retentionDays) };
}

/** The whole of a task for `tasks/get`. @param outcome what the call gave, for an ended one. */
export function detailOf(
  task: StoredTask,
  retentionDays: number,
  outcome: { readonly result: ToolResult } | { readonly error: JsonObject } | undefined,
): JsonObject {
  const facts = { ...taskFacts(task, retentionDays) } as unknown as JsonObject;
  if (outcome) return { ...facts, ...outcome } as unknown as JsonObject;
  return interruptedStates.has(task.state) ? { ...facts, inputRequests: { [questionOf(task)]: asking(task) } } : facts;
}

/** The name of the question that a task waits with: another for each. */
export function questionOf({ seq }: Pick<StoredTask, 'seq'>): string {
  return `question-${seq}`;
}

/** What the answer to a question says; undefined for a declined one. Throws `invalid_params` for what is no answer. */
export function answerIn(response: Json | undefined): string | undefined {
  if (!isJsonObject(response) || typeof response.action !== 'string')
    throw new RialtoError('invalid_params', { message: 'inputResponses holds results of elicitation/create' });
  if (response.action !== 'accept') return undefined;
  const answer = isJsonObject(response.content) ? response.content.answer : undefined;
  if (typeof answer === 'string' && answer !== '') return answer;
  throw new RialtoError('invalid_params', { message: 'the answer is a text' });
}

/** What the call of an adopted task would have given if its caller had waited. Throws what the failure of the task means. */
export function adoptedResult(task: StoredTask): ToolResult {
  const { id: taskId, contextId, state, statusMessage } = task;
  const words = wordsOf(task);
  if (failedStates.has(state)) {
    const told = statusMessage?.metadata?.errorCode;
    const code =
      typeof told === 'string' && Object.hasOwn(errorCodes, told) ? (told as ErrorCode) : 'remote_task_failed';
    throw new RialtoError(code, { message: words || undefined, data: { taskId, state: wordOf(state) } });
  }
  if (!terminalStates.has(state))
    return toolResult({ taskId, contextId, state: wordOf(state), message: words || 'The agent still works on it.' });
  const operation = { name: 'GetTask', params: { id: taskId } } as const;
  const result = dialects['1.0'].encodeResult(operation, taskView(task, { historyLength: 0 }));
  const envelope = JSON.stringify({ jsonrpc: '2.0', id: 0, result });
  return toolResult(toolOutput(decodeBridgeReply(envelope, { status: 200, requestId: 0 })));
}

function taskFacts(task: StoredTask, retentionDays: number): Omit<TaskHandle, 'resultType'> {
  const words = wordsOf(task);
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
  const message = wordsOf(task) || 'The agent waits for an answer.';
  const answer = { type: 'string', title: 'Answer' };
  const requestedSchema = { type: 'object', properties: { answer }, required: ['answer'] };
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } };
}

function wordsOf({ statusMessage }: StoredTask): string {
  return (statusMessage?.parts ?? []).flatMap(({ text }) => text ?? []).join('\n');
}

/** Ids of tasks begin with the time they were made (RFC 9562 section 5.7). */
function madeAt(id: string): number {
  return Number.parseInt(id.replace('-', '').slice(0, 12), 16);
}
