import { RialtoError } from '../../kernel/errors.js';
import { SaidBack } from '../../platform/secrets/said-back.js';

/** Credentials that were sent with a request. */
type Sent = ReadonlySet<string> | undefined;

/** Cached cleaners; a renewed credential changes the size of the set and makes the cached one stale. */
const known = new WeakMap<ReadonlySet<string>, { readonly size: number; readonly saidBack: SaidBack }>();

function saidBackOf(sent: ReadonlySet<string>): SaidBack {
  const before = known.get(sent);
  if (before?.size === sent.size) return before.saidBack;
  const saidBack = new SaidBack(sent);
  known.set(sent, { size: sent.size, saidBack });
  return saidBack;
}

/**
 * Returns the error of a remote agent without the credential that was sent to it; the caller must not see that
 * credential.
 */
export function errorWithout(error: unknown, sent: Sent): RialtoError {
  return sent ? saidBackOf(sent).error(error) : RialtoError.from(error);
}

/** Returns the answer of a remote agent without the credential that was sent to it. */
export function answerWithout<T extends object>(answer: T, sent: Sent): T {
  return sent ? saidBackOf(sent).clean(answer) : answer;
}
