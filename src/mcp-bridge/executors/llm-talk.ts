import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { parseJson } from '../../protocol/json-text.js';
import type { ChatCall, Completion } from '../../protocol/chat/completion.js';
import {
  chatMessage,
  listedFunction,
  toolMessage,
  wordsOf,
  type ChatFunction,
  type ChatMessage,
} from '../../protocol/chat/messages.js';
import type { Message } from '../../protocol/a2a/model.js';
import type { LlmConfig } from '../../registry/published.types.js';
import type { TaskUpdate } from '../../tasks/executor.port.js';

/** What a later run has to know of a task whose work a model does. */
export interface LlmMemo {
  /** What was said in this task, as the model has it, up to its question. */
  readonly said?: readonly ChatMessage[];
  /** The question, the call it was asked by, and the turn that it ended. */
  readonly asked?: { readonly turn: number; readonly callId: string; readonly text: string };
  /** A tool that was called in a turn, and may not be called again. */
  readonly risked?: { readonly turn: number; readonly tool: string };
}

export interface LlmLimits {
  readonly maxSteps: number;
  readonly maxSeconds: number;
  readonly maxTokens: number;
}

export function limitsOf({ maxSteps = 8, maxSeconds = 120, maxTokens = 4_096 }: LlmConfig): LlmLimits {
  return { maxSteps, maxSeconds, maxTokens };
}

/** By which the model asks whoever it works for. */
export const askUser: ChatFunction = {
  name: 'ask_user',
  description: 'Asks the user a question and waits for the answer. Use it only for what you cannot find out yourself.',
  parameters: {
    type: 'object',
    properties: { question: { type: 'string', description: 'What to ask' } },
    required: ['question'],
    additionalProperties: false,
  },
};

/** What is said before this task: who the model is, and what its caller and it said earlier in the context. */
export function opening({ system }: LlmConfig, earlier: readonly Message[]): ChatMessage[] {
  const first: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }];
  return [...first, ...earlier.map((message) => chatMessage(message, false))];
}

/** What was said in this task up to now: the newest message is the answer to a question, or the first. */
export function saidBefore({ said = [], asked }: LlmMemo, message: Message): ChatMessage[] {
  return [...said, asked ? toolMessage(asked.callId, wordsOf(message.parts)) : chatMessage(message)];
}

/** The body of a request. */
export function requestOf(
  { model, temperature }: LlmConfig,
  messages: readonly ChatMessage[],
  functions: Iterable<ChatFunction>,
  maxTokens: number,
): JsonObject {
  return {
    model,
    messages: [...messages],
    tools: [...functions, askUser].map(listedFunction),
    max_tokens: maxTokens,
    stream: true,
    stream_options: { include_usage: true },
    ...(temperature !== undefined && { temperature }),
  };
}

/** What an answer cost, guessed where the server does not count. */
export function tokensOf({ text, calls, tokens }: Completion): number {
  const length = text.length + calls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  return tokens ?? Math.ceil(length / 4);
}

/** What the model asks by a call of `ask_user`. */
export function questionOf({ arguments: text }: ChatCall): string {
  const parsed = parseJson(text);
  const question = parsed.ok && isJsonObject(parsed.value) ? parsed.value.question : undefined;
  return typeof question === 'string' && question.trim() !== '' ? question : 'What else?';
}

export function asks(text: string): TaskUpdate {
  return { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text }] } } };
}
