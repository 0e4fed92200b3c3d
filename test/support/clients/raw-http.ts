import { request, type IncomingHttpHeaders } from 'node:http';

/** The part of an answer that arrived over a bare socket, and the error that ended it, if any. */
export interface RawAnswer {
  status?: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
  text: string;
  error?: NodeJS.ErrnoException;
}

export interface RawOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** Disconnects when this many bytes of the body were read. */
  leaveAfterBytes?: number;
  /** Disconnects when the request is sent and this promise resolves. */
  leaveWhen?: Promise<unknown>;
  maxHeaderSize?: number;
}

/** Sends one request with plain node:http: without redirects, decompression, retries or parsing. Never rejects. */
export function rawRequest(url: string, options: RawOptions = {}): Promise<RawAnswer> {
  const { body, headers = {}, maxHeaderSize } = options;
  const method = options.method ?? (body === undefined ? 'GET' : 'POST');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const answer: RawAnswer = { headers: {}, body: Buffer.alloc(0), text: '' };
    const finish = (error?: NodeJS.ErrnoException) => {
      const all = Buffer.concat(chunks);
      resolve({ ...answer, body: all, text: all.toString('utf8'), ...(error && { error }) });
    };
    const call = request(url, { method, headers, agent: false, maxHeaderSize }, (response) => {
      answer.status = response.statusCode;
      answer.headers = response.headers;
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        const read = chunks.reduce((sum, each) => sum + each.length, 0);
        if (read >= (options.leaveAfterBytes ?? Number.POSITIVE_INFINITY)) call.destroy();
      });
      response.on('error', finish);
      response.on('end', () => finish());
    });
    call.on('error', finish);
    void options.leaveWhen?.then(() => call.destroy());
    call.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
  });
}
