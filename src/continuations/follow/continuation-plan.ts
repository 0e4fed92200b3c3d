import { doubled } from '../../kernel/backoff.js';
import { RialtoError } from '../../kernel/errors.js';
import { storableText } from '../../kernel/json.js';

/** How long and how often a remote task is followed (AN-66, AN-69). Times in milliseconds. */
export interface Budget {
  readonly maxRemoteWorkMs: number;
  readonly maxAttempts: number;
  /** How long a worker follows the remote task after it resumed the continuation. */
  readonly runWaitMs: number;
  readonly pollMs: number;
  readonly rescheduleMs: number;
}

const firstPollMs = 250;
const growth = 1.5;
const longestDeferMs = 240_000;
const longestRetryAfterMs = 600_000;

/**
 * Pause before the next poll, in milliseconds. The first polls follow fast, later ones at the pace of the settings.
 *
 * @param polls number of polls so far.
 * @param chance a random number from 0 up to 1, for jitter: spreads the polls of tasks that began together.
 */
export function pollPause(polls: number, { pollMs }: Pick<Budget, 'pollMs'>, chance: number): number {
  return Math.min(pollMs, firstPollMs * growth ** polls) * (0.75 + chance / 2);
}

/** Use of a continuation at the time when a worker releases it. */
export interface Spent {
  /** How often a worker resumed it. */
  readonly attempts: number;
  /** Milliseconds left of the time that the remote task may take. */
  readonly leftMs: number;
  /** Pause that the remote asked for with its last answer, in milliseconds. */
  readonly retryAfterMs?: number;
}

export type AfterRun =
  { readonly kind: 'again'; readonly inMs: number } | { readonly kind: 'over'; readonly why: 'time' | 'attempts' };

/**
 * Decides what follows when the remote task still runs. The continuation is resumed with a delay that doubles each
 * time, at the latest when the time of the remote is over. It ends at the first of the two limits.
 */
export function afterRun({ attempts, leftMs, retryAfterMs = 0 }: Spent, budget: Budget): AfterRun {
  if (leftMs <= 0) return { kind: 'over', why: 'time' };
  if (attempts >= budget.maxAttempts) return { kind: 'over', why: 'attempts' };
  const pause = deferMs(attempts, budget);
  const requestedMs = Math.min(retryAfterMs, longestRetryAfterMs);
  return { kind: 'again', inMs: Math.min(Math.max(pause, requestedMs), leftMs) };
}

/** Milliseconds that the remaining attempts would last; a stream may be followed for as long without a break. */
export function timeOfAttempts(attempts: number, budget: Budget): number {
  let ms = 0;
  for (let attempt = attempts; attempt < budget.maxAttempts; attempt++)
    ms += deferMs(attempt, budget) + budget.runWaitMs;
  return ms;
}

function deferMs(attempts: number, { rescheduleMs }: Budget): number {
  const mostMs = Math.max(rescheduleMs, longestDeferMs);
  return doubled(attempts + 1, { firstMs: rescheduleMs, mostMs });
}

/** HTTP statuses that allow a retry: 401 with a new token, 508 because agents send it when they are busy (AN-70). */
const transientStatuses: ReadonlySet<unknown> = new Set([401, 408, 425, 429, 500, 502, 503, 504, 508]);

/** JSON-RPC code of an agent that does not know the task. */
const taskNotFound = -32_001;

/**
 * True when a failed poll says nothing about the task: the cause is the connection, the token or the gateway (AN-70).
 */
export function isPassing(error: unknown): boolean {
  const { code, data, message } = RialtoError.from(error);
  if (code === 'remote_timeout' || code === 'unavailable') return true;
  const status = data?.httpStatus ?? data?.upstreamStatus;
  if (code === 'remote_transport') return status === undefined || transientStatuses.has(status);
  return code === 'remote_error' && /invalid or expired a2a token/i.test(`${message} ${String(data?.remoteMessage)}`);
}

/**
 * True when a poll was answered that the task does not exist (A2A v1.0 section 3.3.2), or that the endpoint does not
 * exist.
 */
export function isLost(error: unknown): boolean {
  const { code, data } = RialtoError.from(error);
  if (code === 'remote_transport') return data?.httpStatus === 404 || data?.httpStatus === 410;
  return code === 'remote_error' && data?.remoteCode === taskNotFound && !isPassing(error);
}

/** Text for users when the remote no longer knows the task. */
export function lostText(who: string): string {
  return `The ${who} no longer knows the task.`;
}

/** Text for users when the remote task did not end in time (AN-66). */
export function lateText(who: string, why: 'time' | 'attempts', { maxRemoteWorkMs, maxAttempts }: Budget): string {
  const limit = why === 'time' ? `${durationOf(maxRemoteWorkMs)} of remote work` : `${maxAttempts} attempts`;
  return `The ${who} did not respond in time: it was still working after ${limit}.`;
}

/** Text for users when the remote task completed without content (AN-72). */
export function emptyText(who: string): string {
  return `The ${who} finished its task without an answer.`;
}

const longestText = 500;

/** Ids that identify a failure for the people who search for it. */
export interface FailureIds {
  readonly code: string;
  readonly requestId: string;
  readonly continuationId: string;
  readonly taskId: string;
}

/** Text of a failure with its ids, at most 500 characters long. Cuts the words, never the ids (AN-73). */
export function failureText(words: string, { code, requestId, continuationId, taskId }: FailureIds): string {
  const short = (id: string): string => (id.length > 100 ? storableText(id, 99) : id);
  const [request, task] = [short(requestId), short(taskId)];
  const ids = ` [code: ${code}; request: ${request}; continuation: ${continuationId}; downstream task: ${task}]`;
  const room = longestText - ids.length;
  return `${words.length > room ? storableText(words, room - 1) : words}${ids}`;
}

function durationOf(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  return ms < 120_000 ? `${Math.round(ms / 1_000)} seconds` : `${Math.round(ms / 60_000)} minutes`;
}
