import type { NextFunction } from 'express';
import { RialtoError } from '../../kernel/errors.js';
import { containsUnstorable, parseJson } from '../../protocol/jsonrpc.js';
import type { DoorRequest, DoorResponse } from './http.types.js';
import { sendProblem } from './problem.js';

const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

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

/** The whole body as text. Throws `too_large` as soon as it is, `canceled` when the client went away. */
export function readText(request: DoorRequest, maxBytes: number): Promise<string> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.reject(tooLarge(request, maxBytes));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) {
        chunks.length = 0;
        request.removeAllListeners('data');
        reject(tooLarge(request, maxBytes));
      } else chunks.push(chunk);
    });
    request.once('end', () =>
      resolve(chunks.length === 1 ? chunks[0]!.toString('utf8') : Buffer.concat(chunks).toString('utf8')),
    );
    request.once('error', (cause) => reject(new RialtoError('canceled', { cause })));
    request.once('aborted', () => reject(new RialtoError('canceled')));
  });
}

function tooLarge(request: DoorRequest, maxBytes: number): RialtoError {
  // What is still on its way is read and dropped, so that the client gets to read the answer; not for ever.
  request.resume();
  setTimeout(() => request.destroy(), 2_000).unref();
  return new RialtoError('too_large', { message: `the body is larger than ${maxBytes} bytes`, data: { maxBytes } });
}

/**
 * Express middleware: parses the JSON body of the management API, or ends the request with a problem document. The body of
 * somebody unknown is left where it is: the guard refuses them, and nobody makes us parse megabytes without a credential.
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
        response.setHeader('Connection', 'close');
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
  const parsed = parseJson(await readText(request, maxBytes));
  if (!parsed.ok) throw new RialtoError('invalid_params', { message: parsed.reason });
  if (containsUnstorable(parsed.value))
    throw new RialtoError('invalid_params', { message: 'text must not contain NUL characters or lone surrogates' });
  return parsed.value;
}
