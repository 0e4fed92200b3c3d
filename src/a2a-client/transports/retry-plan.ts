import type { RialtoError } from '../../kernel/errors.js';
import { retryAfterMs } from '../../kernel/retry-after.js';

/** What is asked of a remote agent, as far as asking twice matters. */
export type RemoteOperation =
  | { readonly kind: 'read' }
  | { readonly kind: 'write' }
  | {
      readonly kind: 'send';
      readonly isAsync: boolean;
      readonly idempotencyKey?: string;
      /** Who the token names: the key is unique per caller only. */
      readonly subject?: string;
    };

const maxTries = 3;
const baseMs = 100;
const capMs = 1_000;
const longestRetryAfterMs = 2_000;
const passingStatuses: ReadonlySet<unknown> = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * Milliseconds to wait before the next poll of a task whose last one failed, undefined when the failure says something about the task:
 * without an answer, or with a status that passes, the task may well go on, whatever the number of polls (AN-28, AN-32).
 */
export function nextPollAfter(error: RialtoError, pollMs: number, now: number): number | undefined {
  const { code, data } = error;
  const status = data?.httpStatus;
  const isPassing = typeof status !== 'number' || passingStatuses.has(status) || status > 500;
  if (code !== 'remote_timeout' && !(code === 'remote_transport' && isPassing)) return undefined;
  return Math.max(pollMs, retryAfterMs(data?.retryAfter, now) ?? 0);
}

/** True when the same request may be made again: reads always, a send only when the remote can tell that it is the same (AN-33). */
export function mayRepeat(operation: RemoteOperation): boolean {
  if (operation.kind !== 'send') return operation.kind === 'read';
  return operation.isAsync && Boolean(operation.idempotencyKey) && Boolean(operation.subject);
}

/**
 * Milliseconds to wait before the next try, undefined when there is none (AN-32): three tries, 100 ms doubled up to 1 s, a
 * `Retry-After` up to 2 s honoured and a longer one taken as a no, nothing that would end behind the deadline. `tries` counts
 * those made; `now` is in milliseconds since the epoch.
 */
export function nextTryAfter(
  operation: RemoteOperation,
  error: RialtoError,
  { tries, leftMs, now }: { tries: number; leftMs: number; now: number },
): number | undefined {
  if (tries >= maxTries || !mayRepeat(operation) || error.code !== 'remote_transport') return undefined;
  if (!passingStatuses.has(error.data?.httpStatus)) return undefined;
  const asked = retryAfterMs(error.data?.retryAfter, now);
  if (asked !== undefined && asked > longestRetryAfterMs) return undefined;
  const delay = asked ?? Math.min(capMs, baseMs * 2 ** (tries - 1));
  return delay < leftMs ? delay : undefined;
}
