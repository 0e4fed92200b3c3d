import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createBrotliCompress, createDeflate, createGzip } from 'node:zlib';
import type { Behaviour, StubCall } from './stub-call.js';
import type { Wire } from './stub-wire.js';

const json = { 'content-type': 'application/json' };

/** Sends any HTTP answer, e.g. `http(429, '', { 'retry-after': '1' })`. An object body is sent as JSON. */
export function http(status: number, body: unknown = '', headers: Record<string, string> = {}): Behaviour {
  const content = typeof body === 'string' ? body : JSON.stringify(body);
  return (call) => call.send(status, content, { ...json, ...headers });
}

export const html = (status = 200): Behaviour =>
  http(status, '<!doctype html><title>Sign in</title><h1>Sign in</h1>', { 'content-type': 'text/html' });

/** Sends 200 with exactly this text, declared as JSON. */
export const raw = (body: string): Behaviour => http(200, body);

/** Sends 200 with `{}`: JSON, but not a JSON-RPC envelope. */
export const emptyObject: Behaviour = raw('{}');

export function redirect(status: 301 | 302 | 303 | 307 | 308, location?: string): Behaviour {
  return http(status, '', location === undefined ? {} : { location });
}

/** Redirects the client over `/hop/1` … `/hop/<hops>` before it continues with `then`; for the card (AN-39). */
export function redirectChain(hops: number, then: Behaviour, status: 301 | 302 | 307 | 308 = 302): Behaviour {
  return (call) => {
    const at = Number(/^\/hop\/(\d+)$/.exec(call.pathname)?.[1] ?? 0);
    return at >= hops ? then(call) : redirect(status, `/hop/${at + 1}`)(call);
  };
}

/** Accepts the request and never answers. */
export const hang: Behaviour = (call) => call.untilGone();

/** Resets the connection instead of an answer. */
export const resetAtOnce: Behaviour = (call) => call.cutOff('reset');

function writePart(call: StubCall): Promise<void> {
  const whole = JSON.stringify(call.validAnswer());
  call.response.writeHead(200, { ...json, 'content-length': Buffer.byteLength(whole) });
  return new Promise((resolve) => call.response.write(whole.slice(0, whole.length / 2), () => resolve()));
}

/** Sends half of a correct answer, then RST. */
export const resetMidBody: Behaviour = async (call) => {
  await writePart(call);
  call.cutOff('reset');
};

/** Sends half of a correct answer, then FIN. */
export const halfClose: Behaviour = async (call) => {
  await writePart(call);
  call.cutOff('fin');
};

/** Sends `bytes` of white space every `everyMs`, endlessly. Each read makes progress, but the answer never comes. */
export function drip(bytes = 1, everyMs = 20): Behaviour {
  return async (call) => {
    call.response.writeHead(200, json);
    while (!call.gone.aborted) {
      await call.write(' '.repeat(bytes));
      await call.pause(everyMs);
    }
  };
}

/**
 * Writes `chunk` `count` times, as fast as the client reads: endless SSE, an endless line, or a million tiny events.
 */
export function flood(chunk: string, count = Number.POSITIVE_INFINITY, contentType = 'text/event-stream'): Behaviour {
  return async (call) => {
    call.response.writeHead(200, { 'content-type': contentType });
    for (let sent = 0; sent < count && !call.gone.aborted; sent++) await call.write(chunk);
    call.response.end();
  };
}

const filler = ' '.repeat(65_536);

function* padded(bytes: number, tail: string): Generator<string> {
  for (let left = bytes; left > 0; left -= filler.length) yield left < filler.length ? filler.slice(0, left) : filler;
  yield tail;
}

/**
 * Sends a correct answer after `bytes` of white space. A client without a limit accepts it; a client with a limit must
 * stop.
 */
export function huge(bytes: number, options: { declareLength?: boolean } = {}): Behaviour {
  return async (call) => {
    const tail = JSON.stringify(call.validAnswer());
    const length = { 'content-length': bytes + Buffer.byteLength(tail) };
    call.response.writeHead(200, { ...json, ...(options.declareLength && length) });
    await pipeline(Readable.from(padded(bytes, tail)), call.response).catch(() => undefined);
  };
}

const compressors = { gzip: createGzip, br: createBrotliCompress, deflate: createDeflate };

/** Sends the same, compressed to about a thousandth, for any `Accept-Encoding`. */
export function gzipBomb(inflatedBytes: number, encoding: keyof typeof compressors = 'gzip'): Behaviour {
  return async (call) => {
    const source = Readable.from(padded(inflatedBytes, JSON.stringify(call.validAnswer())));
    call.response.writeHead(200, { ...json, 'content-encoding': encoding });
    await pipeline(source, compressors[encoding](), call.response).catch(() => undefined);
  };
}

/** Sends a correct answer with `count` headers of `bytes` each. */
export function manyHeaders(count: number, bytes = 20): Behaviour {
  return (call) => {
    const extra = Array.from({ length: count }, (_, index) => [`x-filler-${index}`, 'x'.repeat(bytes)]);
    call.send(200, JSON.stringify(call.validAnswer()), { ...json, ...Object.fromEntries(extra) });
  };
}

function withTask(envelope: Wire, change: (task: Wire) => void): Wire {
  const copy = structuredClone(envelope);
  const result = (copy.result ?? copy) as Wire;
  change((result.task ?? result) as Wire);
  return copy;
}

/** Each fault corrupts a correct answer in one way. A string is sent as it is, anything else as JSON. */
const envelopeFaults = {
  'wrong-id': (good) => ({ ...good, id: 'of-another-request' }),
  'null-id': (good) => ({ ...good, id: null }),
  'missing-id': ({ id: _, ...rest }) => rest,
  'wrong-version': (good) => ({ ...good, jsonrpc: '1.0' }),
  'missing-version': ({ jsonrpc: _, ...rest }) => rest,
  'result-and-error': (good) => ({ ...good, error: { code: -32603, message: 'both' } }),
  'neither-result-nor-error': ({ jsonrpc, id }) => ({ jsonrpc, id }),
  'null-result': (good) => ({ ...good, result: null }),
  'text-result': (good) => ({ ...good, result: 'done' }),
  'number-result': (good) => ({ ...good, result: 42 }),
  'list-result': (good) => ({ ...good, result: [good.result] }),
  'empty-result': (good) => ({ ...good, result: {} }),
  'text-error': ({ jsonrpc, id }) => ({ jsonrpc, id, error: 'boom' }),
  'error-without-code': ({ jsonrpc, id }) => ({ jsonrpc, id, error: { message: 'boom' } }),
  'error-with-text-code': ({ jsonrpc, id }) => ({ jsonrpc, id, error: { code: 'E1', message: 'boom' } }),
  batch: (good) => [good],
  'json-null': () => null,
  'json-number': () => 42,
  'json-text': () => '"ok"',
  'empty-body': () => '',
  'white-space': () => ' \n ',
  truncated: (good) => JSON.stringify(good).slice(0, -7),
  'two-documents': (good) => JSON.stringify(good).repeat(2),
  'not-json': () => '{jsonrpc: 2.0}',
  'html-as-json': () => '<html></html>',
  'deeply-nested': () => `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  'unknown-state': (good) => withTask(good, (task) => (task.status = { state: 'TASK_STATE_PONDERING' })),
  'task-of-another-request': (good) => withTask(good, (task) => (task.id = 'task-of-somebody-else')),
  'task-without-id': (good) => withTask(good, (task) => delete task.id),
  'task-without-status': (good) => withTask(good, (task) => delete task.status),
  'task-with-text-status': (good) => withTask(good, (task) => (task.status = 'completed')),
  'artifacts-not-a-list': (good) => withTask(good, (task) => (task.artifacts = { parts: [] })),
  'parts-as-object': (good) => withTask(good, (task) => (task.artifacts = [{ artifactId: 'a', parts: {} }])),
  'null-part': (good) => withTask(good, (task) => (task.artifacts = [{ artifactId: 'a', parts: [null] }])),
} satisfies Record<string, (good: Wire) => unknown>;

export type WrongEnvelope = keyof typeof envelopeFaults;
export const wrongEnvelopeKinds = Object.keys(envelopeFaults) as WrongEnvelope[];

/** Sends a corrupted JSON-RPC answer. Faults of the envelope have no meaning on REST. */
export function wrongEnvelope(kind: WrongEnvelope): Behaviour {
  return (call) => {
    const spoil: (good: Wire) => unknown = envelopeFaults[kind];
    const spoilt = spoil(call.validAnswer());
    call.send(200, typeof spoilt === 'string' ? spoilt : JSON.stringify(spoilt), json);
  };
}
