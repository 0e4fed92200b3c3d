import { RialtoError } from '../kernel/errors.js';
import { isJsonObject } from '../kernel/json.js';
import { formsOf, leastLength, withoutForms } from '../platform/secrets/secret-forms.js';
import type { TaskStatus } from '../protocol/a2a/model.js';
import { failedStates } from '../protocol/a2a/states.js';

/** Credentials that went out with a request. */
type Sent = ReadonlySet<string> | undefined;

/** An error of a remote agent without the credential that it was called with; its caller never had that one. */
export function errorWithout(error: unknown, sent: Sent): RialtoError {
  const known = RialtoError.from(error);
  if (!sent || sent.size === 0) return known;
  const { code, message, hint, violations, data, cause } = known;
  return new RialtoError(code, { message: clean(message, sent), hint, violations, data: clean(data, sent), cause });
}

/** What may hold the status of a task: a task, an event, or an answer with one of them. */
interface Answer {
  readonly status?: TaskStatus;
  readonly task?: Answer;
  readonly statusUpdate?: Answer;
}

/** The same of the last words of a task that did not end well; everything else goes on as the agent said it (RE-21). */
export function answerWithout<T extends object>(answer: T, sent: Sent): T {
  if (!sent || sent.size === 0) return answer;
  const { status, task, statusUpdate }: Answer = answer;
  if (task) return { ...answer, task: answerWithout(task, sent) };
  if (statusUpdate) return { ...answer, statusUpdate: answerWithout(statusUpdate, sent) };
  if (!status?.message || !failedStates.has(status.state)) return answer;
  return { ...answer, status: { ...status, message: clean(status.message, sent) } };
}

function clean<T>(value: T, sent: ReadonlySet<string>): T {
  const forms = [...sent].flatMap(formsOf).filter(({ length }) => length >= leastLength);
  return inStrings(value, (text) => withoutForms(text, forms)) as T;
}

function inStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => inStrings(item, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, inStrings(item, change)]));
}
