import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ByteReader } from './byte-reader.js';

/** One response, read byte by byte by the rules of RFC 9112. */
export interface StrictResponse {
  readonly version: '1.0' | '1.1';
  readonly status: number;
  /** Lower-case names; values of one name that comes twice are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Sizes of the chunks of the chunked coding, without the last one; undefined for other bodies. */
  readonly chunks?: readonly number[];
  /** Statuses of the informational responses before it. */
  readonly informational: readonly number[];
}

export interface StrictRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON. */
  readonly body?: string | object;
  readonly version?: '1.0' | '1.1';
}

/** What a server sent that HTTP/1.1 does not allow. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d) ?([\t\x20-\x7e]*)$/;
const fieldLine = /^([!#$%&'*+.^_`|~\w-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*?)[\t ]*$/;
const listed = new Set(['vary', 'link', 'allow', 'set-cookie', 'www-authenticate', 'cache-control']);

/**
 * A client of HTTP/1.1 on a bare socket that accepts nothing but what RFC 9112 allows: exact status lines, headers and chunk sizes, one
 * terminator after the last byte of a body, and behind it the next response or the end of the connection.
 * Every method throws WireError for anything else.
 */
export class StrictConnection {
  private readonly reader: ByteReader;

  private constructor(private readonly socket: Socket) {
    this.reader = new ByteReader(socket);
  }

  /** @param url of the server; its path is not used. @param allowHalfOpen leaves the connection open when the server ends it. */
  static async open(url: string, { allowHalfOpen = false } = {}): Promise<StrictConnection> {
    const { port, hostname } = new URL(url);
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
    await once(socket, 'connect');
    socket.setNoDelay(true);
    return new StrictConnection(socket);
  }

  /** Sends bytes as they are. */
  write(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Waits until the network took what was written. */
  async written(): Promise<void> {
    await new Promise((resolve) => this.socket.write('', resolve));
  }

  send(request: StrictRequest): void {
    this.write(requestText(request));
  }

  /** Sends a request and reads its response. */
  async exchange(request: StrictRequest): Promise<StrictResponse> {
    this.send(request);
    return this.response(request.method ?? defaultMethod(request));
  }

  /** Reads the next final response. @param method of the request, which decides whether there is a body. */
  async response(method = 'GET'): Promise<StrictResponse> {
    const informational: number[] = [];
    for (;;) {
      const head = await this.head();
      if (head.status < 200 && head.status !== 101) informational.push(head.status);
      else return { ...head, ...(await this.body(method, head)), informational };
    }
  }

  /** Reads a status line and its headers alone; the body is left where it is. */
  async head(): Promise<Pick<StrictResponse, 'version' | 'status' | 'headers'>> {
    const first = await this.reader.line();
    const [, minor, status] = statusLine.exec(first) ?? [];
    if (status === undefined) throw new WireError(`status line: ${JSON.stringify(first)}`);
    return { version: minor === '0' ? '1.0' : '1.1', status: Number(status), headers: await this.headers() };
  }

  /** Reads one chunk of a chunked body; undefined is the end. */
  async chunk(): Promise<Buffer | undefined> {
    const line = await this.reader.line();
    if (!/^[\dA-Fa-f]{1,8}$/.test(line)) throw new WireError(`chunk size: ${JSON.stringify(line)}`);
    const size = Number.parseInt(line, 16);
    const data = await this.reader.take(size);
    await this.crlf(size === 0 ? 'the last chunk' : 'a chunk');
    return size === 0 ? undefined : data;
  }

  /** Waits for the end of the connection by the server. Throws for any byte before it, and for a reset. */
  async ended(): Promise<void> {
    const rest = await this.reader.rest();
    if (rest.length > 0) throw new WireError(`bytes after the response: ${JSON.stringify(rest.toString('latin1'))}`);
  }

  /** Says that no request follows. */
  end(): void {
    this.socket.end();
  }

  /** Says that no request follows, and waits for the end of the connection. Throws as `ended` does. */
  async finish(): Promise<void> {
    this.end();
    await this.ended();
  }

  /** Stops reading, so that the server cannot send more than the network holds; `resume` goes on. */
  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  /** Leaves without a word. */
  destroy(): void {
    this.socket.destroy();
  }

  private async headers(): Promise<Record<string, string>> {
    const headers: Record<string, string> = {};
    for (let line = await this.reader.line(); line !== ''; line = await this.reader.line()) {
      const [, name, value] = fieldLine.exec(line) ?? [];
      if (name === undefined || value === undefined) throw new WireError(`header: ${JSON.stringify(line)}`);
      const key = name.toLowerCase();
      if (key in headers && !listed.has(key)) throw new WireError(`header twice: ${key}`);
      headers[key] = key in headers ? `${headers[key]}, ${value}` : value;
    }
    return headers;
  }

  private async body(
    method: string,
    { version, status, headers }: Pick<StrictResponse, 'version' | 'status' | 'headers'>,
  ): Promise<Pick<StrictResponse, 'body' | 'chunks'>> {
    const { 'content-length': length, 'transfer-encoding': coding } = headers;
    if (length !== undefined && coding !== undefined) throw new WireError('Content-Length and Transfer-Encoding');
    if (length !== undefined && !/^\d+$/.test(length)) throw new WireError(`Content-Length: ${length}`);
    if ((status === 204 || status < 200) && (length ?? coding) !== undefined)
      throw new WireError(`${status} with a Content-Length or Transfer-Encoding`);
    if (method === 'HEAD' || status === 204 || status === 304 || status < 200) return { body: '' };
    if (coding === undefined && length !== undefined)
      return { body: (await this.reader.take(Number(length))).toString('utf8') };
    if (coding === undefined) {
      if (headers.connection !== 'close')
        throw new WireError('a body without a length on a connection that stays open');
      return { body: (await this.reader.rest()).toString('utf8') };
    }
    if (coding !== 'chunked' || version === '1.0') throw new WireError(`Transfer-Encoding: ${coding}`);
    const parts: Buffer[] = [];
    for (let part = await this.chunk(); part; part = await this.chunk()) parts.push(part);
    return { body: Buffer.concat(parts).toString('utf8'), chunks: parts.map((part) => part.length) };
  }

  private async crlf(behind: string): Promise<void> {
    const line = await this.reader.take(2);
    if (line.toString('latin1') !== '\r\n')
      throw new WireError(`no line end behind ${behind}: ${JSON.stringify(line)}`);
  }
}

/** The `data` of the events of a stream, parsed. Throws WireError when the text does not end with a whole event. */
export function eventsIn(body: string): any[] {
  if (body !== '' && !body.endsWith('\n\n')) throw new WireError(`an event without an end: ${body.slice(-80)}`);
  const frames = body.split('\n\n').flatMap((frame) => /^data: (.*)$/m.exec(frame)?.[1] ?? []);
  return frames.map((data) => JSON.parse(data) as unknown);
}

/** The bytes of a request, with `Host` and, for a body, its type and length. */
export function requestText(request: StrictRequest): string {
  const { path, headers = {}, body, version = '1.1', method = defaultMethod(request) } = request;
  const text = typeof body === 'object' ? JSON.stringify(body) : body;
  const all: Record<string, string> = {
    host: 'localhost',
    ...(typeof body === 'object' && { 'content-type': 'application/json' }),
    ...(text !== undefined && { 'content-length': String(Buffer.byteLength(text)) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/${version}\r\n${lines.join('')}\r\n${text ?? ''}`;
}

function defaultMethod({ body }: StrictRequest): string {
  return body === undefined ? 'GET' : 'POST';
}
