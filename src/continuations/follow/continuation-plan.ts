import { RialtoError } from '../../kernel/errors.js';
import { storableText } from '../../kernel/json.js';

/** How long and how often remote work is followed (AN-66, AN-69). Times in milliseconds. */
export interface Budget {
  readonly maxRemoteWorkMs: number;
  readonly maxAttempts: number;
  /** How long a worker that took it up follows it. */
  readonly runWaitMs: number;
  readonly pollMs: number;
  readonly rescheduleMs: number;
}

const firstPollMs = 250;
const growth = 1.5;
const longestPutOffMs = 240_000;
const longestRetryAfterMs = 600_000;

/** Before the next look, after so many: quick at first, then at the pace of the settings; `chance` from 0 up to 1 spreads those that began together. */
export function pollPause(looks: number, { pollMs }: Pick<Budget, 'pollMs'>, chance: number): number {
  return Math.min(pollMs, firstPollMs * growth ** looks) * (0.75 + chance / 2);
}

/** How far a continuation is when a worker lets go of it. */
export interface Spent {
  /** Times a worker took it up. */
  readonly attempts: number;
  /** Of the time that the remote gets. */
  readonly leftMs: number;
  /** What the remote asked for with its last answer. */
  readonly retryAfterMs?: number;
}

export type AfterRun =
  { readonly kind: 'again'; readonly inMs: number } | { readonly kind: 'over'; readonly why: 'time' | 'attempts' };

/**
 * What follows when the remote task is still under way: taken up again, each time twice as late, the last time at the end of its
 * time; or over, at the first of the two limits.
 */
export function afterRun({ attempts, leftMs, retryAfterMs = 0 }: Spent, budget: Budget): AfterRun {
  if (leftMs <= 0) return { kind: 'over', why: 'time' };
  if (attempts >= budget.maxAttempts) return { kind: 'over', why: 'attempts' };
  const pause = putOffMs(attempts, budget);
  const asked = Math.min(retryAfterMs, longestRetryAfterMs);
  return { kind: 'again', inMs: Math.min(Math.max(pause, asked), leftMs) };
}

/** How long the attempts that are left would last; a stream that is followed without a break may take as long. */
export function timeOfAttempts(attempts: number, budget: Budget): number {
  let ms = 0;
  for (let attempt = attempts; attempt < budget.maxAttempts; attempt++)
    ms += putOffMs(attempt, budget) + budget.runWaitMs;
  return ms;
}

function putOffMs(attempts: number, { rescheduleMs }: Budget): number {
  return Math.min(rescheduleMs * 2 ** attempts, Math.max(rescheduleMs, longestPutOffMs));
}

/** Statuses of requests that may be made again later: 401 with a token made anew, 508 as agents say that they are busy (AN-70). */
const passing: ReadonlySet<unknown> = new Set([401, 408, 425, 429, 500, 502, 503, 504, 508]);

/** The JSON-RPC code of an agent that knows no such task. */
const taskNotFound = -32_001;

/** True when a failed look says nothing about the task: the line, the token or this house were at fault (AN-70). */
export function isPassing(error: unknown): boolean {
  const { code, data, message } = RialtoError.from(error);
  if (code === 'remote_timeout' || code === 'unavailable') return true;
  const status = data?.httpStatus ?? data?.upstreamStatus;
  if (code === 'remote_transport') return status === undefined || passing.has(status);
  return code === 'remote_error' && /invalid or expired a2a token/i.test(`${message} ${String(data?.remoteMessage)}`);
}

/** True when a look was answered that there is no such task (A2A v1.0 section 3.3.2), or that nobody is there to ask for it. */
export function isLost(error: unknown): boolean {
  const { code, data } = RialtoError.from(error);
  if (code === 'remote_transport') return data?.httpStatus === 404 || data?.httpStatus === 410;
  return code === 'remote_error' && data?.remoteCode === taskNotFound && !isPassing(error);
}

/** What a user is told when the remote has forgotten its task. */
export function lostText(who: string): string {
  return `The ${who} no longer knows the task.`;
}

/** What a user is told when the remote did not come to an end in time (AN-66). */
export function lateText(who: string, why: 'time' | 'attempts', { maxRemoteWorkMs, maxAttempts }: Budget): string {
  const limit = why === 'time' ? `${durationOf(maxRemoteWorkMs)} of remote work` : `${maxAttempts} attempts`;
  return `The ${who} did not respond in time: it was still working after ${limit}.`;
}

/** What a user is told when a remote ended well and said nothing (AN-72). */
export function emptyText(who: string): string {
  return `The ${who} finished its task without an answer.`;
}

const longestText = 500;

/** Which failure this is, for whoever has to find it again. */
export interface FailureIds {
  readonly code: string;
  readonly requestId: string;
  readonly continuationId: string;
  readonly taskId: string;
}

/** What failed and where to look, in at most 500 characters; ids are never cut, words are (AN-73). */
export function failureText(words: string, { code, requestId, continuationId, taskId }: FailureIds): string {
  const short = (id: string): string => (id.length > 100 ? storableText(id, 99) : id);
  const ids = ` [code: ${code}; request: ${short(requestId)}; continuation: ${continuationId}; downstream task: ${short(taskId)}]`;
  const room = longestText - ids.length;
  return `${words.length > room ? storableText(words, room - 1) : words}${ids}`;
}

function durationOf(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  return ms < 120_000 ? `${Math.round(ms / 1_000)} seconds` : `${Math.round(ms / 60_000)} minutes`;
}
