import type { DoorResponse } from './http.types.js';

/** Sends a text as the whole answer; with `isHead`, only its headers. */
export function endWithText(
  response: DoorResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  text: string,
  isHead = false,
): void {
  const bytes = Buffer.byteLength(text);
  response.writeHead(status, { ...headers, 'Content-Length': bytes });
  // Node sends the headers and a string in one piece. One byte for each character means ASCII, which latin1 writes
  // faster.
  if (isHead) response.end();
  else response.end(text, bytes === text.length ? 'latin1' : 'utf8');
}
