import type { RialtoError } from '../../kernel/errors.js';
import { doubled, retryAfterMs } from '../../kernel/backoff.js';

/** An operation at a remote agent, with the facts that decide whether it may be repeated. */
export type RemoteOperation =
  | { readonly kind: 'read' }
  | { readonly kind: 'write' }
  | {
      readonly kind: 'send';
      readonly isAsync: boolean;
      readonly idempotencyKey?: string;
      /** Subject of the token: the key is unique for each caller only. */
      readonly subject?: string;
    };

const maxTries = 3;
const pause = { firstMs: 100, mostMs: 1_000 };
const longestRetryAfterMs = 2_000;
const temporaryStatuses: ReadonlySet<unknown> = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * Returns the milliseconds to wait before the next poll of a task after a failed poll; undefined when the failure says
 * something about the task. After a poll without an answer, or with a temporary status, the task may still be running,
 * so the number of polls is not limited (AN-28, AN-32).
 */
export function nextPollAfter(error: RialtoError, pollMs: number, now: number): number | undefined {
  const { code, data } = error;
  const status = data?.httpStatus;
  const isTemporary = typeof status !== 'number' || temporaryStatuses.has(status) || status > 500;
  if (code !== 'remote_timeout' && !(code === 'remote_transport' && isTemporary)) return undefined;
  return Math.max(pollMs, retryAfterMs(data?.retryAfter, now) ?? 0);
}

/**
 * True when the same request may be repeated: always for a read, for a send only when the remote agent can detect the
 * repetition (AN-33).
 */
export function mayRepeat(operation: RemoteOperation): boolean {
  if (operation.kind !== 'send') return operation.kind === 'read';
  return operation.isAsync && Boolean(operation.idempotencyKey) && Boolean(operation.subject);
}

/**
 * Returns the milliseconds to wait before the next try; undefined when there is none (AN-32). At most three tries; the
 * pause starts at 100 ms and doubles up to 1 s. A `Retry-After` up to 2 s is honoured, a longer one ends the tries,
 * and no try starts after the deadline. `tries` counts the tries made; `now` is in milliseconds since the epoch.
 */
export function nextTryAfter(
  operation: RemoteOperation,
  error: RialtoError,
  { tries, leftMs, now }: { tries: number; leftMs: number; now: number },
): number | undefined {
  if (tries >= maxTries || !mayRepeat(operation) || error.code !== 'remote_transport') return undefined;
  if (!temporaryStatuses.has(error.data?.httpStatus)) return undefined;
  const requestedMs = retryAfterMs(error.data?.retryAfter, now);
  if (requestedMs !== undefined && requestedMs > longestRetryAfterMs) return undefined;
  const delay = requestedMs ?? doubled(tries, pause);
  return delay < leftMs ? delay : undefined;
}
