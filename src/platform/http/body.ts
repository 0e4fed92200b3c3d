import type { NextFunction } from 'express';
import { RialtoError } from '../../kernel/errors.js';
import { containsUnstorable } from '../../protocol/jsonrpc.js';
import type { DoorRequest, DoorResponse } from './http.types.js';
import { sendProblem } from './problem.js';
import { ByteCollector } from '../byte-collector.js';
import { parseLongJson } from '../turns.js';

const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** How long the gateway reads the rest of a body that is too large. */
const restMs = 10_000;
/** How long a client may read the refusal of a body that the gateway does not read on. */
const refusalMs = 1_000;

/** Throws `unsupported_media_type` unless the body is declared as JSON in UTF-8. */
export function requireJson(request: DoorRequest): void {
  const type = request.headers['content-type'] ?? '';
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(type)?.[1]?.toLowerCase();
  if (!jsonType.test(type) || (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')) {
    throw new RialtoError('unsupported_media_type', { message: 'send Content-Type: application/json' });
  }
  if (request.headers['content-encoding'] !== undefined && request.headers['content-encoding'] !== 'identity') {
    throw new RialtoError('unsupported_media_type', { message: 'compressed bodies are not accepted' });
  }
}

/**
 * Reads the whole body as text. Throws `too_large` as soon as the limit is exceeded, `invalid_params` for very many
 * tiny chunks, `canceled` when the client disconnects.
 */
export function readText(request: DoorRequest, maxBytes: number): Promise<string> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(request, maxBytes));
  if (request.destroyed) return Promise.reject(new RialtoError('canceled'));
  return new Promise((resolve, reject) => {
    const body = new ByteCollector();
    const refuse = (refusal: (request: DoorRequest, maxBytes: number) => RialtoError): void => {
      body.clear();
      request.removeAllListeners('data');
      reject(refusal(request, maxBytes));
    };
    request.on('data', (chunk: Buffer) => {
      if (body.size + chunk.length > maxBytes) return refuse(tooLarge);
      body.add(chunk);
      if (body.isShredded) refuse(shredded);
    });
    request.once('end', () => resolve(body.bytes.toString('utf8')));
    request.once('error', (cause) => reject(new RialtoError('canceled', { cause })));
    // Every request emits `close`. An error captures a stack, so it is created only for a body that did not end.
    request.once('close', () => request.readableEnded || reject(new RialtoError('canceled')));
  });
}

/**
 * Reads and drops the rest of the body, so that a client that sends its whole body before it reads still gets the
 * answer, and the connection can serve the next request. A body that does not end in time ends the connection.
 */
function tooLarge(request: DoorRequest, maxBytes: number): RialtoError {
  request.resume();
  const late = setTimeout(() => request.destroy(), restMs).unref();
  request.once('close', () => clearTimeout(late));
  return new RialtoError('too_large', { message: `the body is larger than ${maxBytes} bytes`, data: { maxBytes } });
}

/** Stops to read, because each chunk takes processor time even when it is dropped, and ends the connection. */
function shredded(request: DoorRequest): RialtoError {
  request.pause();
  // A paused request alone would still buffer 64 KiB, which are 65,536 chunks.
  setImmediate(() => request.socket.pause());
  setTimeout(() => request.destroy(), refusalMs).unref();
  return new RialtoError('invalid_params', { message: 'the body has too many tiny chunks; send larger chunks' });
}

/**
 * Express middleware: parses the JSON body of the management API, or ends the request with a problem document. The
 * body of an unauthenticated caller is not read: the guard refuses the request, and a caller without a credential
 * must not make the gateway parse megabytes.
 */
export function jsonBodies(maxBytes: number, isKnown: (request: DoorRequest) => Promise<boolean>) {
  const read = async (request: DoorRequest): Promise<void> => {
    if (await isKnown(request)) request.body = await readJson(request, maxBytes);
  };
  return (request: DoorRequest, response: DoorResponse, next: NextFunction): void => {
    if (!hasBody(request)) return next();
    read(request).then(
      () => next(),
      (error: unknown) => {
        const known = RialtoError.from(error);
        sendProblem(request, response, known.code, known);
      },
    );
  };
}

function hasBody(request: DoorRequest): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0;
}

async function readJson(request: DoorRequest, maxBytes: number): Promise<unknown> {
  requireJson(request);
  const parsed = await parseLongJson(await readText(request, maxBytes));
  if (!parsed.ok) throw new RialtoError('invalid_params', { message: parsed.reason });
  if (containsUnstorable(parsed.value))
    throw new RialtoError('invalid_params', { message: 'text must not contain NUL characters or lone surrogates' });
  return parsed.value;
}
