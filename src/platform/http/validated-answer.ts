import { createHash } from 'node:crypto';
import type { DoorRequest, DoorResponse } from './http.types.js';

/** Bytes with their validators (RFC 9110 section 8.8). */
export interface ValidatedBody {
  readonly body: Buffer;
  readonly etag: string;
  readonly lastModified?: Date;
}

/** A strong entity tag: of the bytes themselves (RFC 9110 section 8.8.3). */
export function etagOf(body: Buffer): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
}

/** Answers bytes, or 304 when the caller has them already (RFC 9110 section 13); a HEAD gets the headers alone. */
export function sendValidated(
  request: DoorRequest,
  response: DoorResponse,
  { body, etag, lastModified }: ValidatedBody,
  headers: Readonly<Record<string, string>>,
): void {
  const modified = lastModified?.toUTCString();
  const all = { ...headers, ETag: etag, ...(modified !== undefined && { 'Last-Modified': modified }) };
  if (isKnown(request, etag, modified)) return void response.writeHead(304, all).end();
  response.writeHead(200, { ...all, 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': body.length });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/**
 * An entity tag wins over a date. A date has to be the very one that was sent: what stands behind a path may be replaced by
 * something older.
 */
function isKnown({ headers }: DoorRequest, etag: string, modified: string | undefined): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined) return tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
  return modified !== undefined && headers['if-modified-since'] === modified;
}
