import { RialtoError } from '../kernel/errors.js';

export interface SseEvent {
  /** The event type; `message` when the stream names none. */
  readonly event: string;
  readonly data: string;
  /** The last id of the stream, also when an earlier event set it. */
  readonly id?: string;
  /** Milliseconds to wait before a new connection, when the stream has set it. */
  readonly retry?: number;
}

export interface SseLimits {
  /** Bytes of one event's data. */
  readonly maxEventBytes?: number;
  readonly maxLineBytes?: number;
}

const mebibyte = 1024 * 1024;

/**
 * Parses a text/event-stream in pieces (WHATWG HTML section 9.2.6). Memory is bounded: an event or a line over its
 * limit throws `remote_invalid_response` with `data.reason` `remote_stream_limit`. Each byte is processed once, even
 * when the pieces are very small.
 */
export class SseParser {
  private readonly decoder = new TextDecoder();
  private readonly maxEventBytes: number;
  private readonly maxLineBytes: number;
  private line: string[] = [];
  private lineBytes = 0;
  private data: string[] = [];
  private dataBytes = 0;
  private event = '';
  private id?: string;
  private retry?: number;
  private afterCarriageReturn = false;

  constructor({ maxEventBytes = mebibyte, maxLineBytes = mebibyte + 1024 }: SseLimits = {}) {
    this.maxEventBytes = maxEventBytes;
    this.maxLineBytes = maxLineBytes;
  }

  /**
   * Yields the events that this piece completes, in order. An event that is incomplete when the stream ends is dropped.
   */
  *push(chunk: Uint8Array | string): Generator<SseEvent, void> {
    const text = typeof chunk === 'string' ? chunk : this.decoder.decode(chunk, { stream: true });
    let start = 0;
    const ends = /\r\n|\r|\n/g;
    if (this.afterCarriageReturn && text !== '') {
      this.afterCarriageReturn = false;
      if (text.startsWith('\n')) start = ends.lastIndex = 1;
    }
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      this.extend(text.slice(start, end.index));
      start = ends.lastIndex;
      this.afterCarriageReturn = end[0] === '\r' && start === text.length;
      const event = this.endLine();
      if (event) yield event;
    }
    this.extend(text.slice(start));
  }

  private extend(piece: string): void {
    if (piece === '') return;
    this.lineBytes += Buffer.byteLength(piece);
    if (this.lineBytes > this.maxLineBytes) throw tooLarge('line');
    this.line.push(piece);
  }

  private endLine(): SseEvent | undefined {
    const line = this.line.join('');
    this.line = [];
    this.lineBytes = 0;
    if (line === '') return this.emitEvent();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    this.field(colon < 0 ? line : line.slice(0, colon), value);
    return undefined;
  }

  private field(name: string, value: string): void {
    if (name === 'data') {
      this.dataBytes += Buffer.byteLength(value) + 1;
      if (this.dataBytes > this.maxEventBytes) throw tooLarge('event');
      this.data.push(value);
    } else if (name === 'event') this.event = value;
    else if (name === 'id' && !value.includes('\u0000')) this.id = value;
    else if (name === 'retry' && /^\d{1,9}$/.test(value)) this.retry = Number(value);
  }

  private emitEvent(): SseEvent | undefined {
    const { data, event, id, retry } = this;
    this.data = [];
    this.dataBytes = 0;
    this.event = '';
    if (data.length === 0) return undefined;
    return {
      event: event === '' ? 'message' : event,
      data: data.join('\n'),
      ...(id !== undefined && { id }),
      ...(retry !== undefined && { retry }),
    };
  }
}

/**
 * Formats one event for the wire with its blank line. Line breaks split `data` and are removed from the other fields.
 */
export function formatEvent({ event, data, id, retry }: Partial<SseEvent> & { readonly data: string }): string {
  let text = '';
  if (id !== undefined) text += `id: ${oneLine(id)}\n`;
  if (event !== undefined) text += `event: ${oneLine(event)}\n`;
  if (retry !== undefined) text += `retry: ${retry}\n`;
  if (!/[\r\n]/.test(data)) return `${text}data: ${data}\n\n`;
  for (const line of data.split(/\r\n|\r|\n/)) text += `data: ${line}\n`;
  return `${text}\n`;
}

function oneLine(text: string): string {
  return text.replace(/[\r\n\0]/g, '');
}

function tooLarge(what: 'line' | 'event'): RialtoError {
  return new RialtoError('remote_invalid_response', {
    message: `a ${what} of the remote stream is too large`,
    data: { reason: 'remote_stream_limit' },
  });
}
