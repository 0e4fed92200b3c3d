import { createHash } from 'node:crypto';
import { isSettled, type Behaviour, type StubCall } from './stub-call.js';
import type { Part, State, StreamPayload } from './stub-wire.js';

/** Completes with one artifact of one data part. */
export const data = (value: unknown): Behaviour => parts([{ data: value }]);

/** Completes with one artifact of one text part. */
export const text = (value: string): Behaviour => parts([{ text: value }]);

/** Completes with one artifact of these parts, in order. */
export const multi = (list: Part[]): Behaviour => parts(list);

/** Completes with one artifact for each list of parts; without lists, with no artifacts. */
export function artifacts(...lists: Part[][]): Behaviour {
  return (call) => call.settle({ state: 'completed', artifacts: lists });
}

function parts(list: Part[]): Behaviour {
  return artifacts(list);
}

/** Answers a task in any state, also an unknown one. The text becomes its status message. */
export function state(name: State, statusText?: string): Behaviour {
  return (call) =>
    call.settle({ state: name, ...(statusText !== undefined && { statusParts: [{ text: statusText }] }) });
}

export const failed = (statusText: string): Behaviour => state('failed', statusText);
export const rejected = (statusText?: string): Behaviour => state('rejected', statusText);
export const canceled = (statusText?: string): Behaviour => state('canceled', statusText);

/** Answers with a Message, without a task. */
export function message(list: Part[]): Behaviour {
  return (call) => call.message(list);
}

/** Waits, then continues with `then`. A client that disconnects during the wait gets no answer. */
export function slow(ms: number, then: Behaviour): Behaviour {
  return async (call) => {
    await call.pause(ms);
    if (!call.gone.aborted) await then(call);
  };
}

/** Answers `working` at once. The `polls`-th tasks/get continues with `then`; earlier polls get `working`. */
export function asyncTask(polls: number, then: Behaviour): Behaviour {
  return async (call) => {
    if (call.isStream) return then(call);
    let left = polls;
    call.task.onGet = (poll) => {
      left -= 1;
      if (left > 0) return poll.settle({ state: 'working' });
      delete poll.task.onGet;
      return then(poll);
    };
    await call.settle({ state: 'working' });
  };
}

/** Answers after `ms` milliseconds, or at once with a working task when the request asks for that. */
export function blocking(ms: number, then: Behaviour): Behaviour {
  return (call) => {
    const { returnImmediately, blocking: waits } = (call.route.params.configuration ?? {}) as Record<string, unknown>;
    const mayGoOn = returnImmediately === true || waits === false;
    return (mayGoOn ? asyncTask(5, then) : slow(ms, then))(call);
  };
}

/** Stays `working` at every poll until it is canceled. */
export const never: Behaviour = asyncTask(Number.POSITIVE_INFINITY, text('never'));

/** Asks a question in the state input-required. The next message to the task continues with `then`. */
export function ask(question: string, then: Behaviour = echoMessage): Behaviour {
  return async (call) => {
    call.task.onMessage = then;
    await call.settle({ state: 'input-required', statusParts: [{ text: question }] });
  };
}

const echoMessage: Behaviour = (call) =>
  call.settle({ state: 'completed', artifacts: [[{ data: { message: call.route.params.message } }]] });

/** Uses one behaviour per request, in order; the last one repeats. */
export function sequence(...behaviours: [Behaviour, ...Behaviour[]]): Behaviour {
  let next = 0;
  return (call) => {
    const chosen = behaviours[Math.min(next, behaviours.length - 1)]!;
    next += 1;
    return chosen(call);
  };
}

/** Answers with the received request as data: `{ method, path, headers, body }`. */
export const echo: Behaviour = (call) => {
  const { method, path, headers, json } = call.request;
  return call.settle({ state: 'completed', artifacts: [[{ data: { method, path, headers, body: json } }]] });
};

/** Answers a well-formed protocol error. `data` is sent unchanged (RE-89). */
export function jsonrpcError(code: number, errorMessage: string, errorData?: unknown): Behaviour {
  return (call) => call.error(code, errorMessage, errorData);
}

/** Continues with `then` for the right bearer token; answers 401 otherwise. */
export function bearer(token: string, then: Behaviour): Behaviour {
  return (call) => {
    if (call.request.headers.authorization === `Bearer ${token}`) return then(call);
    call.send(401, '{"error":"unauthorized"}', { 'content-type': 'application/json', 'www-authenticate': 'Bearer' });
  };
}

/** One step of a stream: an event, a comment, or raw bytes, after an optional wait. */
export type StreamStep = { afterMs?: number; id?: string } & (StreamPayload | { comment: string } | { raw: string });

/**
 * Streams the steps one by one. On a plain send the same steps run in the same time, and the answer is the resulting
 * task. A cancel ends it as `canceled`. `end` says what follows the last step: close, stay open, or reset.
 */
export function stream(steps: StreamStep[], end: 'close' | 'hang' | 'reset' = 'close'): Behaviour {
  return async (call) => {
    if (call.isStream) call.openStream();
    for (const step of steps) {
      if (step.afterMs !== undefined) await call.pause(step.afterMs);
      if (call.gone.aborted) return;
      if (call.task.canceled.signal.aborted) break;
      await play(call, step);
    }
    if (end === 'hang') await call.untilGoneOrCanceled();
    if (call.gone.aborted) return;
    if (call.task.canceled.signal.aborted) await call.emit({ status: 'canceled' });
    else if (end === 'reset') return call.cutOff('reset');
    if (call.isStream) call.response.end();
    else call.result(call.encodedTask());
  };
}

async function play(call: StubCall, step: StreamStep): Promise<void> {
  if ('comment' in step) return call.isStream ? call.write(`: ${step.comment}\n\n`) : undefined;
  if ('raw' in step) return call.isStream ? call.write(step.raw) : undefined;
  await call.emit(step, step.id);
}

/** The default for `subscribe`: sends the snapshot, then nothing until the task is canceled. */
export const follow: Behaviour = async (call) => {
  if (isSettled(call.task)) return call.error(-32004, `Task ${call.task.id} has ended`);
  const before = call.task.state;
  await stream([{ task: before }], 'hang')(call);
};

/** The default for the card path: serves the card with an ETag, or 304 when the client already has it. */
export const serveCard: Behaviour = (call) => {
  const body = JSON.stringify(call.card);
  const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
  if (call.request.headers['if-none-match'] === etag) return void call.response.writeHead(304, { etag }).end();
  call.send(200, body, { 'content-type': 'application/json', etag });
};
