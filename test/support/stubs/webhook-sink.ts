import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import type { TestGateway } from '../gateway/gateway.js';

/** The answer to one POST. A number is a status. */
export type Reply =
  | number
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** `hang` never answers; `break off` sends a 200 and breaks the connection in the body. */
  | 'hang'
  | 'break off'
  /** Answers 200 and returns the credentials of the post in the body. */
  | 'say back';

/** One POST as received. */
export interface Received {
  readonly path: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
  /** The body as JSON. */
  readonly body: any;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A receiver of webhooks: a real server that answers with the scripted replies, and then 200. */
export interface WebhookSink {
  readonly url: string;
  readonly received: Received[];
  /** Sets the answers to the next posts, in order. With `forEver`, the last one answers all later posts. */
  script(replies: readonly Reply[], forEver?: boolean): void;
  /** Sets the answer to all posts to one path; the script does not apply to them. */
  answerAt(path: string, reply: Reply): void;
  /** Largest number of posts that were in progress at the same time. */
  mostAtOnce(): number;
  /** Number of open connections. */
  connections(): number;
  /** Waits this many milliseconds before each answer. */
  delay(ms: number): void;
  /** Holds the answers to all later posts until the returned function is called. */
  hold(): () => void;
  close(): Promise<void>;
}

export async function startWebhookSink(): Promise<WebhookSink> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let replies: Reply[] = [];
  let usual: Reply = 200;
  const atPath = new Map<string, Reply>();
  let [open, most, delayMs] = [0, 0, 0];
  let held: Promise<void> | undefined;

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    most = Math.max(most, ++open);
    response.once('close', () => open--);
    const text = await textOf(request);
    received.push({ path: request.url ?? '', headers: request.headers, text, body: parsed(text), at: Date.now() });
    await held;
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    send(response, atPath.get(request.url ?? '') ?? replies.shift() ?? usual);
  };
  const server = createServer((request, response) => void answer(request, response));
  server.on('connection', (socket) => void sockets.add(socket.on('close', () => sockets.delete(socket))));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    script: (next, forEver = false) => {
      replies = [...next];
      usual = forEver ? next.at(-1)! : 200;
    },
    answerAt: (path, reply) => void atPath.set(path, reply),
    mostAtOnce: () => most,
    connections: () => sockets.size,
    delay: (ms) => void (delayMs = ms),
    hold: () => {
      let release = (): void => undefined;
      held = new Promise((resolve) => (release = resolve));
      return () => {
        held = undefined;
        release();
      };
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function send(response: ServerResponse, reply: Reply): void {
  if (reply === 'hang') return;
  if (reply === 'break off') {
    response.writeHead(200, { 'content-length': '100' }).write('half');
    setTimeout(() => response.destroy(), 20);
    return;
  }
  if (reply === 'say back') return void response.end(response.req.headers.authorization);
  const { status, headers = {}, body = '' } = typeof reply === 'number' ? { status: reply } : reply;
  response.writeHead(status, headers).end(body);
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Makes the next attempt of all pending deliveries, or of those of one task, due now. Locks the rows in the order of
 * the product, to avoid deadlocks.
 */
export async function hurry(gateway: Pick<TestGateway, 'sql'>, taskId: string | null = null): Promise<void> {
  try {
    await gateway.sql(
      `update webhook_deliveries set next_at = now() where id in (
         select id from webhook_deliveries where status = 'pending' and ($1::uuid is null or task_id = $1)
         order by task_id, config_id, seq for update)`,
      [taskId],
    );
  } catch (error) {
    // The gateway locked the same rows, and PostgreSQL ended this transaction because of a deadlock.
    if ((error as { code?: string }).code !== '40P01') throw error;
    await hurry(gateway, taskId);
  }
}
