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

/** State of a task done by a model, stored for a later run. */
export interface LlmMemo {
  /** The messages of this task up to the model's question, in the form of the chat API. */
  readonly said?: readonly ChatMessage[];
  /** The question, the id of its tool call, and the turn that it ended. */
  readonly asked?: { readonly turn: number; readonly callId: string; readonly text: string };
  /** A tool that was called in a turn and must not be called again. */
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

/** Function that the model calls to ask its user a question. */
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

/** Returns the messages before this task: the system prompt, and the earlier messages of the context. */
export function opening({ system }: LlmConfig, earlier: readonly Message[]): ChatMessage[] {
  const first: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }];
  return [...first, ...earlier.map((message) => chatMessage(message, false))];
}

/** Returns the messages of this task up to now; the newest one is the answer to a question, or the first message. */
export function saidBefore({ said = [], asked }: LlmMemo, message: Message): ChatMessage[] {
  return [...said, asked ? toolMessage(asked.callId, wordsOf(message.parts)) : chatMessage(message)];
}

/** Returns the body of a request to the model server. */
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

/** Returns the tokens that an answer used; an estimate when the server does not count them. */
export function tokensOf({ text, calls, tokens }: Completion): number {
  const length = text.length + calls.reduce((sum, call) => sum + call.name.length + call.arguments.length, 0);
  return tokens ?? Math.ceil(length / 4);
}

/** Returns the question in a call of `ask_user`. */
export function questionOf({ arguments: text }: ChatCall): string {
  const parsed = parseJson(text);
  const question = parsed.ok && isJsonObject(parsed.value) ? parsed.value.question : undefined;
  return typeof question === 'string' && question.trim() !== '' ? question : 'What else?';
}

export function asks(text: string): TaskUpdate {
  return { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text }] } } };
}
