import { pipeline, Transform, type Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { RialtoError } from '../../../kernel/errors.js';

/** A proxy in front of a server adds at most one layer; a body with more layers is a bomb (abuse 24). */
const maxLayers = 2;

function inflater(coding: string): Transform {
  if (coding === 'gzip' || coding === 'x-gzip') return createGunzip();
  if (coding === 'deflate') return createInflate();
  if (coding === 'br') return createBrotliDecompress();
  throw new RialtoError('remote_invalid_response', { cause: new Error(`content coding ${coding}`) });
}

/** The codings to remove, outermost first; none for a server that used `identity` (RFC 9110 section 8.4). */
export function codingsOf(contentEncoding: string | undefined): string[] {
  if (contentEncoding === undefined) return [];
  const codings = contentEncoding.split(',').map((coding) => coding.trim().toLowerCase());
  return codings.filter((coding) => coding !== '' && coding !== 'identity').reverse();
}

/** Passes at most `maxBytes`, and maps every failure before it to an error code. */
function cap(maxBytes: number): Transform {
  let total = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      total += chunk.length;
      if (total <= maxBytes) done(null, chunk);
      else
        done(new RialtoError('remote_invalid_response', { cause: new Error(`more than ${maxBytes} inflated bytes`) }));
    },
    destroy(error, done) {
      done(
        error === null || error instanceof RialtoError
          ? error
          : new RialtoError('remote_invalid_response', { cause: error }),
      );
    },
  });
}

/**
 * Removes the content codings of a body, with a limit on its inflated size while it streams. Errors are RialtoErrors
 * (`remote_invalid_response` for an invalid or too large body) and also end the source. Throws for an unknown coding.
 */
export function inflated(source: Readable, codings: readonly string[], maxBytes: number): Readable {
  if (codings.length > maxLayers)
    throw new RialtoError('remote_invalid_response', { cause: new Error('too many content codings') });
  const body = cap(maxBytes);
  const layers = codings.flatMap((coding) => [inflater(coding), cap(maxBytes)]).slice(0, -1);
  pipeline([source, ...layers, body], () => undefined);
  return body.on('error', () => undefined);
}
