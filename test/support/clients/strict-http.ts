import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ByteReader } from './byte-reader.js';

/** One response, parsed byte by byte with the rules of RFC 9112. */
export interface StrictResponse {
  readonly version: '1.0' | '1.1';
  readonly status: number;
  /** Lower-case names; the values of a repeated name are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Sizes of the chunks of a chunked body, without the last chunk; undefined for other bodies. */
  readonly chunks?: readonly number[];
  /** Statuses of the informational responses before this one. */
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

/** Thrown for bytes of a server that HTTP/1.1 does not allow. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d) ?([\t\x20-\x7e]*)$/;
const fieldLine = /^([!#$%&'*+.^_`|~\w-]+):[\t ]*([\t\x20-\x7e\x80-\xff]*?)[\t ]*$/;
const listed = new Set(['vary', 'link', 'allow', 'set-cookie', 'www-authenticate', 'cache-control']);

/**
 * A client of HTTP/1.1 on a bare socket that accepts only what RFC 9112 allows: exact status lines, headers and chunk
 * sizes, one terminator after the last byte of a body, and then the next response or the end of the connection. Every
 * method throws `WireError` for anything else.
 */
export class StrictConnection {
  private readonly reader: ByteReader;

  private constructor(private readonly socket: Socket) {
    this.reader = new ByteReader(socket);
  }

  /**
   * Opens a connection.
   * @param url of the server; its path is not used.
   * @param allowHalfOpen keeps the connection open when the server ends it.
   */
  static async open(url: string, { allowHalfOpen = false } = {}): Promise<StrictConnection> {
    const { port, hostname } = new URL(url);
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen });
    await once(socket, 'connect');
    socket.setNoDelay(true);
    return new StrictConnection(socket);
  }

  /** Sends bytes unchanged. */
  write(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Waits until the operating system has taken all written bytes. */
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

  /**
   * Reads the next final response.
   * @param method of the request, which decides whether there is a body.
   */
  async response(method = 'GET'): Promise<StrictResponse> {
    const informational: number[] = [];
    for (;;) {
      const head = await this.head();
      if (head.status < 200 && head.status !== 101) informational.push(head.status);
      else return { ...head, ...(await this.body(method, head)), informational };
    }
  }

  /** Reads only a status line and its headers, and leaves the body unread. */
  async head(): Promise<Pick<StrictResponse, 'version' | 'status' | 'headers'>> {
    const first = await this.reader.line();
    const [, minor, status] = statusLine.exec(first) ?? [];
    if (status === undefined) throw new WireError(`invalid status line: ${JSON.stringify(first)}`);
    return { version: minor === '0' ? '1.0' : '1.1', status: Number(status), headers: await this.headers() };
  }

  /** Reads one chunk of a chunked body; undefined at the end. */
  async chunk(): Promise<Buffer | undefined> {
    const line = await this.reader.line();
    if (!/^[\dA-Fa-f]{1,8}$/.test(line)) throw new WireError(`invalid chunk size: ${JSON.stringify(line)}`);
    const size = Number.parseInt(line, 16);
    const data = await this.reader.take(size);
    await this.crlf(size === 0 ? 'the last chunk' : 'a chunk');
    return size === 0 ? undefined : data;
  }

  /** Waits until the server ends the connection. Throws for any byte before the end, and for a reset. */
  async ended(): Promise<void> {
    const rest = await this.reader.rest();
    if (rest.length > 0) throw new WireError(`bytes after the response: ${JSON.stringify(rest.toString('latin1'))}`);
  }

  /** Ends the sending side: no request follows. */
  end(): void {
    this.socket.end();
  }

  /** Ends the sending side and waits until the server ends the connection. Throws as `ended` does. */
  async finish(): Promise<void> {
    this.end();
    await this.ended();
  }

  /** Stops reading, so that the server cannot send more than the network buffers hold. `resume` continues. */
  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  /** Closes the socket without notice. */
  destroy(): void {
    this.socket.destroy();
  }

  private async headers(): Promise<Record<string, string>> {
    const headers: Record<string, string> = {};
    for (let line = await this.reader.line(); line !== ''; line = await this.reader.line()) {
      const [, name, value] = fieldLine.exec(line) ?? [];
      if (name === undefined || value === undefined) throw new WireError(`invalid header: ${JSON.stringify(line)}`);
      const key = name.toLowerCase();
      if (key in headers && !listed.has(key)) throw new WireError(`header sent twice: ${key}`);
      headers[key] = key in headers ? `${headers[key]}, ${value}` : value;
    }
    return headers;
  }

  private async body(
    method: string,
    { version, status, headers }: Pick<StrictResponse, 'version' | 'status' | 'headers'>,
  ): Promise<Pick<StrictResponse, 'body' | 'chunks'>> {
    const { 'content-length': length, 'transfer-encoding': coding } = headers;
    if (length !== undefined && coding !== undefined)
      throw new WireError('the response has both Content-Length and Transfer-Encoding');
    if (length !== undefined && !/^\d+$/.test(length)) throw new WireError(`invalid Content-Length: ${length}`);
    if ((status === 204 || status < 200) && (length ?? coding) !== undefined)
      throw new WireError(`a response with status ${status} has a Content-Length or Transfer-Encoding`);
    if (method === 'HEAD' || status === 204 || status === 304 || status < 200) return { body: '' };
    if (coding === undefined && length !== undefined)
      return { body: (await this.reader.take(Number(length))).toString('utf8') };
    if (coding === undefined) {
      if (headers.connection !== 'close') throw new WireError('a body without a length needs Connection: close');
      return { body: (await this.reader.rest()).toString('utf8') };
    }
    if (coding !== 'chunked' || version === '1.0') throw new WireError(`unexpected Transfer-Encoding: ${coding}`);
    const parts: Buffer[] = [];
    for (let part = await this.chunk(); part; part = await this.chunk()) parts.push(part);
    return { body: Buffer.concat(parts).toString('utf8'), chunks: parts.map((part) => part.length) };
  }

  private async crlf(behind: string): Promise<void> {
    const line = await this.reader.take(2);
    if (line.toString('latin1') !== '\r\n') throw new WireError(`no line end after ${behind}: ${JSON.stringify(line)}`);
  }
}

/** Parses the `data` of all events of a stream. Throws `WireError` when the last event is incomplete. */
export function eventsIn(body: string): any[] {
  if (body !== '' && !body.endsWith('\n\n')) throw new WireError(`the last event is incomplete: ${body.slice(-80)}`);
  const frames = body.split('\n\n').flatMap((frame) => /^data: (.*)$/m.exec(frame)?.[1] ?? []);
  return frames.map((data) => JSON.parse(data) as unknown);
}

/** Returns the bytes of a request, with `Host` and, for a body, its type and length. */
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
