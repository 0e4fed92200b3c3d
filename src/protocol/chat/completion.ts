import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/*
 * Reads answers of OpenAI-compatible servers (POST /chat/completions), whole or as a stream of chunks. Servers omit
 * many members: an absent member counts as empty, and only answers without any meaning are refused.
 */

/** A function call that the model asks for. */
export interface ChatCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, if the model follows its instructions. */
  readonly arguments: string;
}

/** One answer of the model. */
export interface Completion {
  readonly text: string;
  readonly calls: readonly ChatCall[];
  /** `stop`, `tool_calls`, `length`, `content_filter` or another word of the server. */
  readonly finish?: string;
  /** Number of tokens that the model produced, when the server reports it. */
  readonly tokens?: number;
}

const maxCalls = 64;

/** Joins the chunks of a stream. */
export class CompletionReader {
  private text = '';
  private finish?: string;
  private tokens?: number;
  private readonly calls: { index?: number; id: string; name: string; arguments: string }[] = [];

  /** True when the stream has a finish reason; without one, it broke off. */
  get isFinished(): boolean {
    return this.finish !== undefined;
  }

  /**
   * Adds a chunk and returns its text. Throws `remote_invalid_response` for a value that is not a chunk, `remote_error`
   * for an error of the server.
   */
  addChunk(chunk: Json): string {
    const { delta, finish } = readChoice(chunk, 'delta');
    this.finish = finish ?? this.finish;
    this.tokens = tokensIn(chunk) ?? this.tokens;
    for (const call of listIn(delta.tool_calls)) this.takeCall(call);
    const text = typeof delta.content === 'string' ? delta.content : '';
    this.text += text;
    return text;
  }

  completion(): Completion {
    const { text, finish, tokens } = this;
    const calls = this.calls.map(({ index: _, ...call }, position) => ({ ...call, id: call.id || `call_${position}` }));
    return storable({ text, calls, finish, tokens });
  }

  /**
   * Adds a piece of a call. Pieces of one call have the same index; without an index, each piece with a name starts a
   * new call.
   */
  private takeCall({ index, id, function: called }: JsonObject): void {
    const { name = '', arguments: args = '' } = isJsonObject(called) ? called : {};
    const numbered = typeof index === 'number' ? this.calls.find((one) => one.index === index) : undefined;
    const known = numbered ?? (typeof index === 'number' || name !== '' ? undefined : this.calls.at(-1));
    const call = known ?? { ...(typeof index === 'number' && { index }), id: '', name: '', arguments: '' };
    if (!known && this.calls.push(call) > maxCalls) throw noCompletion(`has more than ${maxCalls} tool calls`);
    if (typeof id === 'string' && call.id === '') call.id = id;
    if (typeof name === 'string' && call.name === '') call.name = name;
    call.arguments += typeof args === 'string' ? args : JSON.stringify(args);
  }
}

/** Reads a whole answer. Throws the same errors as CompletionReader.addChunk. */
export function completionOf(answer: Json): Completion {
  const reader = new CompletionReader();
  const { delta: message, finish = 'stop' } = readChoice(answer, 'message');
  const numbered = listIn(message.tool_calls).map((call, index) => ({ ...call, index }));
  const delta: JsonObject = { ...message, tool_calls: numbered };
  reader.addChunk({ ...(answer as JsonObject), choices: [{ delta, finish_reason: finish }] });
  return reader.completion();
}

/** Reads the first choice. A chunk without a choice has other facts, such as the total number of tokens. */
function readChoice(answer: Json, member: 'delta' | 'message'): { delta: JsonObject; finish?: string } {
  if (!isJsonObject(answer)) throw noCompletion('is not an object');
  if (isJsonObject(answer.error) || typeof answer.error === 'string')
    throw new RialtoError('remote_error', { message: 'the model server stopped with an error' });
  if (!Array.isArray(answer.choices)) throw noCompletion('has no choices');
  const [choice] = answer.choices;
  if (choice === undefined && member === 'delta') return { delta: {} };
  if (!isJsonObject(choice)) throw noCompletion('has no choice');
  const { [member]: delta, finish_reason: finish } = choice;
  return { delta: isJsonObject(delta) ? delta : {}, ...(typeof finish === 'string' && finish !== '' && { finish }) };
}

function tokensIn(chunk: Json): number | undefined {
  const usage = isJsonObject(chunk) && isJsonObject(chunk.usage) ? chunk.usage : {};
  return typeof usage.completion_tokens === 'number' ? usage.completion_tokens : undefined;
}

function listIn(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function storable({ text, calls, ...rest }: Completion): Completion {
  const clean = (value: string): string => value.toWellFormed().replaceAll('\u0000', '\uFFFD');
  return {
    ...rest,
    text: clean(text),
    calls: calls.map(({ id, name, arguments: args }) => ({ id: clean(id), name: clean(name), arguments: clean(args) })),
  };
}

function noCompletion(what: string): RialtoError {
  return new RialtoError('remote_invalid_response', { message: `the answer of the model server ${what}` });
}
