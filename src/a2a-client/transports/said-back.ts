import { RialtoError } from '../../kernel/errors.js';
import { SaidBack } from '../../platform/secrets/said-back.js';

/** Credentials that went out with a request. */
type Sent = ReadonlySet<string> | undefined;

/** A renewed credential is one more. */
const known = new WeakMap<ReadonlySet<string>, { readonly size: number; readonly saidBack: SaidBack }>();

function saidBackOf(sent: ReadonlySet<string>): SaidBack {
  const before = known.get(sent);
  if (before?.size === sent.size) return before.saidBack;
  const saidBack = new SaidBack(sent);
  known.set(sent, { size: sent.size, saidBack });
  return saidBack;
}

/** An error of a remote agent without the credential that it was called with; its caller never had that one. */
export function errorWithout(error: unknown, sent: Sent): RialtoError {
  return sent ? saidBackOf(sent).error(error) : RialtoError.from(error);
}

/** The same of what it answers, whether its task ended well or not. */
export function answerWithout<T extends object>(answer: T, sent: Sent): T {
  return sent ? saidBackOf(sent).clean(answer) : answer;
}
