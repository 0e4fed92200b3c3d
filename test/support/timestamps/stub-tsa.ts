import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Authority, Flaws } from './authority.js';

/** A time-stamping authority over HTTP (RFC 3161 section 3.4). */
export interface StubTsa {
  readonly url: string;
  /** The requests as received. */
  readonly received: { readonly type?: string; readonly body: Buffer }[];
  /** Sets the answers to the next requests, in order: an HTTP status, or what is wrong with the timestamp. */
  script(...replies: (number | Flaws)[]): void;
  close(): Promise<void>;
}

export async function startStubTsa(authority: Authority): Promise<StubTsa> {
  const received: StubTsa['received'] = [];
  let replies: (number | Flaws)[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then(async (body) => {
      received.push({ type: request.headers['content-type'], body });
      const reply = replies.shift() ?? {};
      if (typeof reply === 'number') return response.writeHead(reply).end();
      const answer = await authority.answer(body, reply);
      return response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(answer);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tsa`,
    received,
    script: (...next) => void (replies = next),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
