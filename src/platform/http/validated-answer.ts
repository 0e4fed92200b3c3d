import { createHash } from 'node:crypto';
import type { DoorRequest, DoorResponse } from './http.types.js';
import { endWithText } from './text-answer.js';

/** JSON text with its validators (RFC 9110 section 8.8). */
export interface ValidatedBody {
  readonly body: string;
  readonly etag: string;
  readonly lastModified?: Date;
}

/** Makes a strong entity tag of a text in UTF-8 (RFC 9110 section 8.8.3). */
export function etagOf(body: string): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
}

/**
 * Sends the text, or 304 when the caller already has them (RFC 9110 section 13). A HEAD request gets only the headers.
 */
export function sendValidated(
  request: DoorRequest,
  response: DoorResponse,
  { body, etag, lastModified }: ValidatedBody,
  headers: Readonly<Record<string, string>>,
): void {
  const modified = lastModified?.toUTCString();
  const all = { ...headers, ETag: etag, ...(modified !== undefined && { 'Last-Modified': modified }) };
  if (isKnown(request, etag, modified)) return void response.writeHead(304, all).end();
  const isHead = request.method === 'HEAD';
  endWithText(response, 200, { ...all, 'Content-Type': 'application/json; charset=utf-8' }, body, isHead);
}

/**
 * True when the caller already has this body. An entity tag wins over a date. A date must equal the one that was
 * sent, because an older version may replace the body later.
 */
function isKnown({ headers }: DoorRequest, etag: string, modified: string | undefined): boolean {
  const tags = headers['if-none-match'];
  if (tags !== undefined) return tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
  return modified !== undefined && headers['if-modified-since'] === modified;
}
