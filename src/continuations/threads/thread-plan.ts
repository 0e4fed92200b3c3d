import { storableText, type JsonObject } from '../../kernel/json.js';
import { artifactsText } from '../../protocol/a2a/artifact-text.js';
import type { Part } from '../../protocol/a2a/model.js';
import { wordOf } from '../../protocol/a2a/states.js';
import type { StoredTask } from '../../tasks/task.types.js';

/** How a post to a thread ended: with a status, or without any. */
export interface PostEnd {
  readonly status?: number;
  /** The header `Retry-After`. */
  readonly retryAfter?: string;
}

/** What is kept of an answer that took it. */
export interface Receipt {
  readonly status: number;
  /** What its receiver calls the message. */
  readonly messageId?: string;
}

export type ThreadVerdict =
  | { readonly kind: 'received' }
  | { readonly kind: 'again'; readonly inMs: number }
  | { readonly kind: 'dead'; readonly why: 'gone' | 'exhausted' };

const [second, minute] = [1_000, 60_000];
/** Seven tries within three quarters of an hour: whoever reads the thread does not come back tomorrow. */
const delays = [second, 5 * second, 30 * second, 2 * minute, 10 * minute, 30 * minute];
const jitter = 0.2;

/** Tries that an answer has. */
export const mostTries = delays.length + 1;

/**
 * What follows from a try. 410 is for good, everything else but 2xx is tried again; a receiver may ask for a pause of up to twice the planned one.
 * @param attempt the number of the try that ended, from 1. @param chance at least 0, less than 1.
 */
export function verdictOf(attempt: number, { status = 0, retryAfter }: PostEnd, chance: number): ThreadVerdict {
  if (status >= 200 && status < 300) return { kind: 'received' };
  if (status === 410) return { kind: 'dead', why: 'gone' };
  const delay = delays[attempt - 1];
  if (delay === undefined) return { kind: 'dead', why: 'exhausted' };
  const asked = /^\s*\d{1,9}\s*$/.test(retryAfter ?? '') ? Number(retryAfter) * second : 0;
  return {
    kind: 'again',
    inMs: Math.round(Math.max(delay * (1 - jitter + 2 * jitter * chance), Math.min(asked, 2 * delay))),
  };
}

/** As agent-native has it (AN-72). */
const longestText = 16_000;

type Told = Pick<StoredTask, 'id' | 'agentName' | 'state' | 'statusMessage' | 'artifacts'>;

/** The body of the answer: the same for every send of it. @param id its mark. */
export function answerOf(task: Told, { id, threadId }: { id: string; threadId: string }): JsonObject {
  const said = task.statusMessage?.parts ?? [];
  const words = new Set([artifactsText(task.artifacts), wordsOf(said)].filter((each) => each !== ''));
  const text = [...words].join('\n') || dataOf([...task.artifacts.flatMap(({ parts }) => parts), ...said]);
  return bodyOf('answer', task, { id, threadId, text: text || `The task ended as ${wordOf(task.state)}.` });
}

/** The body of the progress message as it is now. */
export function progressOf(task: Told, { id, threadId }: { id: string; threadId: string }): JsonObject {
  const said = task.statusMessage?.parts ?? [];
  const text = wordsOf(said) || dataOf(said);
  return bodyOf('progress', task, { id, threadId, text: text || `The agent ${task.agentName} still works on it.` });
}

function bodyOf(
  type: 'answer' | 'progress',
  { id: taskId, agentName: agent, state }: Told,
  { id, threadId: thread, text }: { id: string; threadId: string; text: string },
): JsonObject {
  const shown = text.length > longestText ? storableText(text, longestText - 1) : text;
  return { id, type, thread, taskId, agent, state: wordOf(state), text: shown };
}

function wordsOf(parts: readonly Part[]): string {
  return parts.flatMap(({ text }) => text ?? []).join('\n');
}

function dataOf(parts: readonly Part[]): string {
  return parts.flatMap(({ data }) => (data === undefined ? [] : JSON.stringify(data))).join('\n');
}
