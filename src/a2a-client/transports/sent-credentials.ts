import { RialtoError } from '../../kernel/errors.js';
import { CredentialRemover } from '../../platform/secrets/credential-remover.js';

/** Credentials that were sent with a request. */
type Sent = ReadonlySet<string> | undefined;

/** Cached cleaners; a renewed credential changes the size of the set and makes the cached one stale. */
const known = new WeakMap<ReadonlySet<string>, { readonly size: number; readonly remover: CredentialRemover }>();

function removerOf(sent: ReadonlySet<string>): CredentialRemover {
  const before = known.get(sent);
  if (before?.size === sent.size) return before.remover;
  const remover = new CredentialRemover(sent);
  known.set(sent, { size: sent.size, remover });
  return remover;
}

/**
 * Returns the error of a remote agent without the credential that was sent to it; the caller must not see that
 * credential.
 */
export function errorWithout(error: unknown, sent: Sent): RialtoError {
  return sent ? removerOf(sent).error(error) : RialtoError.from(error);
}

/** Returns the answer of a remote agent without the credential that was sent to it. */
export function answerWithout<T extends object>(answer: T, sent: Sent): T {
  return sent ? removerOf(sent).clean(answer) : answer;
}
