import { connect } from 'node:net';

/** An answer parsed from raw bytes; absent when the server closed the connection without an answer. */
export interface SocketAnswer {
  readonly status: number;
  /** Lower-case names; of equal names, the last one. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SocketResult {
  readonly answer?: SocketAnswer;
  /** True when the server neither answered nor closed the connection in time. */
  readonly hung: boolean;
}

export interface SendOptions {
  /** Milliseconds after which a server counts as hung. */
  readonly hangMs: number;
  /**
   * Milliseconds after which the client disconnects. Used for requests that claim more bytes than they send, for which
   * the server rightly waits.
   */
  readonly leaveAfterMs?: number;
  /** Reads an event stream to its end; otherwise the answer has only the head of the stream. */
  readonly streams?: boolean;
}

/** Writes bytes unchanged to a port of loopback and reads one answer. Never rejects. */
export function sendBytes(port: number, bytes: Buffer, options: SendOptions): Promise<SocketResult> {
  const { hangMs, leaveAfterMs, streams = false } = options;
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1');
    const finish = (hung: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ answer: parseAnswer(Buffer.concat(chunks), true, streams), hung });
    };
    const timer = setTimeout(() => finish(leaveAfterMs === undefined), leaveAfterMs ?? hangMs);
    socket.on('error', () => finish(false));
    socket.on('close', () => finish(false));
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      if (parseAnswer(Buffer.concat(chunks), false, streams)) finish(false);
    });
    socket.write(bytes);
  });
}

/** Parses the first final answer when it is complete. `ended` means that no more bytes will come. */
function parseAnswer(bytes: Buffer, ended: boolean, streams: boolean): SocketAnswer | undefined {
  const text = bytes.toString('latin1');
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1] ?? 0);
  if (status >= 100 && status < 200) return parseAnswer(bytes.subarray(end + 4), ended, streams);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  if (!streams && headers['content-type']?.startsWith('text/event-stream')) return { status, headers, body: '' };
  const body = bodyOf(bytes.subarray(end + 4), headers, ended);
  return body === undefined ? undefined : { status, headers, body };
}

function bodyOf(rest: Buffer, headers: Record<string, string>, ended: boolean): string | undefined {
  const length = headers['content-length'];
  if (headers['transfer-encoding'] === 'chunked') {
    const complete = rest.subarray(-5).toString('latin1') === '0\r\n\r\n';
    return complete || ended ? unchunked(rest) : undefined;
  }
  if (length === undefined && !ended) return undefined;
  const wanted = length === undefined ? rest.length : Number(length);
  return rest.length >= wanted || ended ? rest.subarray(0, wanted).toString('utf8') : undefined;
}

function unchunked(bytes: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const size = lineEnd < 0 ? 0 : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    if (!size) break;
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 4 + size;
  }
  return Buffer.concat(parts).toString('utf8');
}
