import { retryAfterMs, spread } from '../../kernel/backoff.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import { artifactsText } from '../../protocol/a2a/artifact-text.js';
import type { Part } from '../../protocol/a2a/model.js';
import { wordOf } from '../../protocol/a2a/states.js';
import type { StoredTask } from '../../tasks/task.types.js';

/** How a post to a thread ended: with an HTTP status, or without one. */
export interface PostEnd {
  readonly status?: number;
  /** Value of the header `Retry-After`. */
  readonly retryAfter?: string;
}

/** Stored facts of the response that accepted the answer. */
export interface Receipt {
  readonly status: number;
  /** Id of the message at the receiver. */
  readonly messageId?: string;
}

export type ThreadVerdict =
  | { readonly kind: 'received' }
  | { readonly kind: 'again'; readonly inMs: number }
  | { readonly kind: 'dead'; readonly why: 'gone' | 'exhausted' };

const [second, minute] = [1_000, 60_000];
/** Seven attempts within three quarters of an hour: a reader of the thread does not wait until the next day. */
const delays = [second, 5 * second, 30 * second, 2 * minute, 10 * minute, 30 * minute];

/** Attempts for each answer. */
export const mostTries = delays.length + 1;

/**
 * Decides what follows an attempt. 410 ends the answer. Any other status except 2xx is retried; a receiver may ask
 * for up to twice the planned pause.
 *
 * @param attempt number of the attempt that ended, from 1.
 * @param now milliseconds since the epoch.
 * @param chance random number for jitter: at least 0, less than 1.
 */
export function verdictOf(
  attempt: number,
  { status = 0, retryAfter }: PostEnd,
  { now, chance }: { now: number; chance: number },
): ThreadVerdict {
  if (status >= 200 && status < 300) return { kind: 'received' };
  if (status === 410) return { kind: 'dead', why: 'gone' };
  const delay = delays[attempt - 1];
  if (delay === undefined) return { kind: 'dead', why: 'exhausted' };
  const requestedMs = retryAfterMs(retryAfter, now) ?? 0;
  return { kind: 'again', inMs: Math.round(Math.max(spread(delay, chance), Math.min(requestedMs, 2 * delay))) };
}

/** Same limit as in agent-native (AN-72). */
const longestText = 16_000;

type ToldTask = Pick<StoredTask, 'id' | 'agentName' | 'state' | 'statusMessage' | 'artifacts'>;

/**
 * Body of the answer: the same for every attempt.
 *
 * @param id the idempotency key of the answer.
 */
export function answerBody(task: ToldTask, { id, threadId }: { id: string; threadId: string }): JsonObject {
  const statusParts = task.statusMessage?.parts ?? [];
  const texts = new Set([artifactsText(task.artifacts), partsText(statusParts)].filter((each) => each !== ''));
  const text = [...texts].join('\n') || partsData([...task.artifacts.flatMap(({ parts }) => parts), ...statusParts]);
  return threadBody('answer', task, { id, threadId, text: text || `The task ended as ${wordOf(task.state)}.` });
}

/** Body of the progress message for the current state of the task. */
export function progressBody(task: ToldTask, { id, threadId }: { id: string; threadId: string }): JsonObject {
  const statusParts = task.statusMessage?.parts ?? [];
  const text = partsText(statusParts) || partsData(statusParts);
  return threadBody('progress', task, { id, threadId, text: text || `The agent ${task.agentName} still works on it.` });
}

function threadBody(
  type: 'answer' | 'progress',
  { id: taskId, agentName: agent, state }: ToldTask,
  { id, threadId: thread, text }: { id: string; threadId: string; text: string },
): JsonObject {
  const shown = text.length > longestText ? storableText(text, longestText - 1) : text;
  return { id, type, thread, taskId, agent, state: wordOf(state), text: shown };
}

function partsText(parts: readonly Part[]): string {
  return parts.flatMap(({ text }) => text ?? []).join('\n');
}

function partsData(parts: readonly Part[]): string {
  return parts.flatMap(({ data }) => (data === undefined ? [] : JSON.stringify(data))).join('\n');
}
