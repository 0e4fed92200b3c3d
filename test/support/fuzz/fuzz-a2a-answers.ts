import type { A2aShot } from './fuzz-a2a.js';
import type { SocketAnswer } from '../clients/raw-socket.js';

/** The result of a check of one answer: its fault, if any, and the tasks that it names. */
export interface Verdict {
  readonly wrong?: string;
  /** Ids of the tasks that the answer names as existing. */
  readonly tasks: readonly string[];
  /** True when the answer refuses the request, so the request must have no effect. */
  readonly refused: boolean;
}

type Value = Record<string, any>;

const nothing: Verdict = { tasks: [], refused: false };
const faulty = (wrong: string): Verdict => ({ ...nothing, wrong });
const isObject = (value: unknown): value is Value =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Checks the answer to a shot. `hung` means that no answer came in time. */
export function verdictOf(shot: A2aShot, answer: SocketAnswer | undefined, hung: boolean): Verdict {
  if (hung) return faulty('hung');
  if (!answer) return shot.lies || shot.leaveAfterMs !== undefined ? nothing : faulty('no answer');
  const { status, headers, body } = answer;
  if (status < 200 || status >= 500) return faulty(`status ${status}: ${body.slice(0, 300)}`);
  if (/\bat .+\.[jt]s:\d+|node_modules|pg_catalog|insert into /.test(body))
    return faulty('the answer contains a stack trace or an SQL statement');
  if (headers['x-request-id'] === undefined)
    return status >= 400 && body === '' ? { ...nothing, refused: true } : faulty('no X-Request-Id');
  if (body === '') return emptyBody(shot, status, headers);
  const type = headers['content-type'] ?? '';
  if (type.startsWith('text/event-stream')) return streamVerdict(shot, body);
  if (!/^application\/(problem\+json|json|a2a\+json)/.test(type))
    return status < 400 ? nothing : faulty(`an error has the content type ${type || 'none'}`);
  const value = parsed(body);
  if (value === undefined) return isCut(shot, answer) ? nothing : faulty(`no JSON: ${body.slice(0, 100)}`);
  return valueVerdict(shot, status, type, value);
}

function emptyBody({ method, door, leaveAfterMs }: A2aShot, status: number, headers: Value): Verdict {
  const mayBeEmpty = method === 'HEAD' || [204, 304].includes(status) || door === 'card' || leaveAfterMs !== undefined;
  const isStream = String(headers['content-type']).startsWith('text/event-stream');
  return mayBeEmpty || isStream ? nothing : faulty(`status ${status} without a body`);
}

/** Tells whether the client left early and has only a part of the answer. */
function isCut({ leaveAfterMs }: A2aShot, { headers, body }: SocketAnswer): boolean {
  return leaveAfterMs !== undefined && Buffer.byteLength(body) < Number(headers['content-length'] ?? Infinity);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function valueVerdict(shot: A2aShot, status: number, type: string, value: unknown): Verdict {
  if (type.startsWith('application/problem+json')) return problemVerdict(shot, status, value);
  const isRpc = isObject(value) && value.jsonrpc === '2.0';
  if (shot.plain && shot.door === 'rpc') return isRpc ? rpcVerdict(status, value) : faulty('no JSON-RPC');
  if (isRpc) return rpcVerdict(status, value);
  if (status < 400) return { tasks: tasksIn(value), refused: false };
  return restErrorVerdict(shot, status, value);
}

function problemVerdict({ plain, door }: A2aShot, status: number, value: unknown): Verdict {
  if (!isObject(value) || typeof value.code !== 'string' || value.status !== status)
    return faulty('not a problem document');
  if (value.code === 'internal') return faulty('an internal error');
  // Before any door, the gateway checks the method and answers 405 with a problem document.
  if (plain && door !== 'api' && status !== 405)
    return faulty(`a protocol door answered with the problem document ${value.code}`);
  return { tasks: [], refused: true };
}

function rpcVerdict(status: number, { id, result, error }: Value): Verdict {
  if (id !== null && typeof id !== 'string' && typeof id !== 'number')
    return faulty('the id is neither null nor a string nor a number');
  if ((result === undefined) === (error === undefined))
    return faulty('the response has neither or both of result and error');
  if (error === undefined)
    return status === 200 ? { tasks: tasksIn(result), refused: false } : faulty(`a result with status ${status}`);
  const wrong = rpcErrorFault(error);
  return wrong ? faulty(wrong) : { tasks: [], refused: true };
}

function rpcErrorFault(error: unknown): string | undefined {
  if (!isObject(error) || !Number.isInteger(error.code) || typeof error.message !== 'string')
    return 'not an error object';
  if (error.code === -32_603 || /^internal error/i.test(error.message)) return `internal: ${JSON.stringify(error)}`;
  return undefined;
}

/** Checks a REST error: google.rpc.Status in v1.0, the bare error object of JSON-RPC in v0.3. */
function restErrorVerdict({ door, plain }: A2aShot, status: number, value: unknown): Verdict {
  if (!isObject(value)) return faulty('the error is not an object');
  const isStatus = isObject(value.error);
  if (plain && isStatus !== (door === 'rest')) return faulty('the error has the format of another version');
  if (!isStatus) {
    const wrong = rpcErrorFault(value);
    return wrong ? faulty(wrong) : { tasks: [], refused: true };
  }
  const { code, status: name, message, details } = value.error as Value;
  if (code !== status || typeof name !== 'string' || typeof message !== 'string' || !Array.isArray(details))
    return faulty(`no google.rpc.Status: ${JSON.stringify(value).slice(0, 200)}`);
  return name === 'INTERNAL' || name === 'UNKNOWN' ? faulty('an internal error') : { tasks: [], refused: true };
}

function streamVerdict({ door, plain }: A2aShot, body: string): Verdict {
  const tasks: string[] = [];
  let last = -1;
  for (const block of body.split('\n\n').slice(0, -1)) {
    const lines = block.split('\n');
    const field = (name: string): string | undefined =>
      lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const [data, id, event] = [field('data'), field('id'), field('event')];
    if (data === undefined) continue;
    const value = parsed(data);
    if (!isObject(value)) return faulty(`a frame without JSON: ${data.slice(0, 100)}`);
    const isRun = typeof value.run_id === 'string'; // here `error` is a text: the reason why the run ended
    const error = event === 'error' || (value.error !== undefined && !isRun) ? (value.error ?? value) : undefined;
    const wrong = error && (isObject(error) && typeof error.status === 'string' ? undefined : rpcErrorFault(error));
    if (wrong || (isObject(error) && error.status === 'INTERNAL')) return faulty(`in a stream, ${wrong ?? 'INTERNAL'}`);
    if (plain && door === 'rpc' && value.jsonrpc !== '2.0') return faulty('a frame without its JSON-RPC envelope');
    if (id !== undefined && Number(id) <= last) return faulty(`event ${id} after ${last}`);
    if (id !== undefined) last = Number(id);
    tasks.push(...tasksIn(value.jsonrpc === '2.0' ? value.result : value));
  }
  return { tasks, refused: false };
}

/** Returns the ids of tasks in a result: of the result itself, or of its `task` member. */
function tasksIn(value: unknown): string[] {
  if (!isObject(value)) return [];
  const found = isObject(value.task) ? value.task : value;
  return typeof found.id === 'string' && isObject(found.status) && typeof found.contextId === 'string'
    ? [found.id]
    : [];
}
