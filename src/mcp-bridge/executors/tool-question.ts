import { questionsOf } from '../../continuations/tool-task.types.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { Message } from '../../protocol/a2a/model.js';
import type { Said, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import { argumentsIn } from './message-arguments.js';

/** The question of a tool before its answer, with everything needed to call the tool again with the reply. */
export interface AskedByTool {
  readonly tool: string;
  readonly args: JsonObject;
  /** The turn that the question ended: a later message is the reply. */
  readonly turn: number;
  /** Name of the question in the protocol of the server. */
  readonly name: string;
  readonly text: string;
  readonly schema: JsonObject;
  /** State of the server, sent back unchanged. */
  readonly requestState?: Json;
}

/**
 * Returns the question in a result that asks for input (MCP 2026-07-28, multi round-trip requests): none, or one form.
 * Throws `unsupported_operation` for other questions.
 */
export function questionIn(
  { inputRequests = {}, requestState }: JsonObject,
  { tool, args, turn }: Pick<AskedByTool, 'tool' | 'args' | 'turn'>,
): AskedByTool | undefined {
  const questions = isJsonObject(inputRequests) ? Object.entries(inputRequests) : [];
  const [first, second] = questions;
  if (!first) return undefined;
  const [name, question] = first;
  const { method, params } = question as { method?: Json; params?: Json };
  const form = isJsonObject(params) ? params : {};
  if (second) throw unanswerable('several things at once');
  if (method !== 'elicitation/create') throw unanswerable(method === 'roots/list' ? 'roots' : 'a sample of a model');
  if (form.mode === 'url' || !isJsonObject(form.requestedSchema)) throw unanswerable('a visit to a web page');
  const text = typeof form.message === 'string' && form.message !== '' ? form.message : 'The tool wants to know more.';
  return {
    tool,
    args,
    turn,
    name,
    text,
    schema: form.requestedSchema,
    ...(requestState !== undefined && { requestState }),
  };
}

/**
 * Returns the question as the state of its task: a form with its schema in the metadata.
 * @param wrong problem of the previous reply.
 */
export function asking(asked: AskedByTool, wrong?: string): TaskUpdate {
  return { status: { state: 'TASK_STATE_INPUT_REQUIRED', ...formOf(asked, wrong) } };
}

function formOf({ text, schema }: Pick<AskedByTool, 'text' | 'schema'>, wrong?: string): { message: Said } {
  const words = wrong === undefined ? text : `${text}\n\n(${wrong})`;
  return { message: { parts: [{ text: words }], metadata: { kind: 'form', requestedSchema: schema } } };
}

/**
 * Returns the answers for the next call, or the reason why the message has none. `{"action": "decline"}` is an answer
 * too.
 */
export function answersIn(
  message: Message,
  { name, schema, requestState }: AskedByTool,
):
  | { readonly answers: JsonObject; readonly wrong?: undefined }
  | { readonly answers?: undefined; readonly wrong: string } {
  const found = argumentsIn(message, schema);
  if (!found.ok) return { wrong: found.reason };
  const { action } = found.args;
  const isRefusal = (action === 'decline' || action === 'cancel') && Object.keys(found.args).length === 1;
  const response: JsonObject = isRefusal ? { action } : { action: 'accept', content: found.args };
  return { answers: { inputResponses: { [name]: response }, ...(requestState !== undefined && { requestState }) } };
}

/**
 * Returns the questions of a server's task as the state of the gateway's task: as a form, and unchanged for callers
 * that support the protocol of the server.
 */
export function askingAll(inputRequests: JsonObject, wrong?: string): Said {
  const { message } = formOf(questionIn({ inputRequests }, noCall)!, wrong);
  return { ...message, metadata: { ...message.metadata, inputRequests } };
}

/**
 * Returns the answers of the newest message to the questions that its task waited with, from the form or in the
 * protocol of the server (`{"inputResponses": {…}}`). `again` is set when the message answers nothing.
 */
export function answersTo({ task, message }: Pick<TaskRun, 'task' | 'message'>): {
  readonly answers?: JsonObject;
  readonly again?: TaskUpdate;
} {
  const before = task.history.slice(0, task.history.indexOf(message));
  const inputRequests = questionsOf(before.findLast((one) => questionsOf(one)));
  if (!inputRequests) return {};
  const given = message.parts.find(({ data }) => isJsonObject(data) && isJsonObject(data.inputResponses))?.data;
  if (isJsonObject(given)) return { answers: given.inputResponses as JsonObject };
  const found = answersIn(message, questionIn({ inputRequests }, noCall)!);
  if (found.answers) return { answers: found.answers.inputResponses as JsonObject };
  return { again: { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: askingAll(inputRequests, found.wrong) } } };
}

/** Placeholder: the question of a task is answered in the task, and its tool is not called again. */
const noCall = { tool: '', args: {}, turn: 0 };

function unanswerable(what: string): RialtoError {
  const message = `the tool asks for ${what}; the sender of a message to an agent can only be asked to fill in a form`;
  return new RialtoError('unsupported_operation', { message });
}
