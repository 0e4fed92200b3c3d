import type { Json, JsonObject } from '../../kernel/json.js';
import type { Message, Part } from '../a2a/model.js';
import type { Completion } from './completion.js';

/** A message of a conversation with a model, in the format of OpenAI's chat completions. */
export type ChatMessage = JsonObject & { readonly role: 'system' | 'user' | 'assistant' | 'tool' };

/** A function that the model may call. */
export interface ChatFunction {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

const maxDescription = 1_024;

/**
 * Converts an A2A message to a message of a conversation: texts as they are, data as JSON, urls as text. Models with
 * vision get images; other files are only named.
 */
export function chatMessage({ role, parts }: Pick<Message, 'role' | 'parts'>, seesImages = true): ChatMessage {
  if (role === 'ROLE_AGENT') return { role: 'assistant', content: wordsOf(parts) };
  const images = seesImages ? parts.filter(isImage) : [];
  const words = wordsOf(parts.filter((part) => !images.includes(part)));
  if (images.length === 0) return { role: 'user', content: words };
  const pictures = images.map(({ raw, mediaType }): JsonObject => {
    return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${raw}` } };
  });
  return { role: 'user', content: [...(words === '' ? [] : [{ type: 'text', text: words }]), ...pictures] };
}

/** Builds the model's answer as the next request repeats it. */
export function assistantMessage({ text, calls }: Completion): ChatMessage {
  if (calls.length === 0) return { role: 'assistant', content: text };
  const tool_calls = calls.map(({ id, name, arguments: args }): Json => {
    return { id, type: 'function', function: { name, arguments: args } };
  });
  return { role: 'assistant', content: text === '' ? null : text, tool_calls };
}

export function toolMessage(callId: string, content: string): ChatMessage {
  return { role: 'tool', tool_call_id: callId, content };
}

/** Encodes a function for the member `tools` of a request. */
export function listedFunction({ name, description, parameters }: ChatFunction): JsonObject {
  return { type: 'function', function: { name, description: description.slice(0, maxDescription), parameters } };
}

/** Returns the parts of a message as text. */
export function wordsOf(parts: readonly Part[]): string {
  return parts.map(wordOf).join('\n');
}

function wordOf({ text, data, url, raw, filename, mediaType }: Part): string {
  if (text !== undefined) return text;
  if (data !== undefined) return JSON.stringify(data);
  const label = [filename, mediaType].filter(Boolean).join(', ') || 'a file';
  return raw === undefined ? `[${label}: ${url}]` : `[${label}]`;
}

function isImage({ raw, mediaType }: Part): boolean {
  return raw !== undefined && /^image\/(?:png|jpeg|gif|webp)$/.test(mediaType ?? '');
}
