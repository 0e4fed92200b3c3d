import type { WebSocket } from 'ws';
import { systemClock } from '../../kernel/clock.js';
import { newId } from '../../kernel/ids.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { withTimeout } from '../../kernel/abort.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { httpOf } from '../../platform/http/outbound/safe-socket.js';
import { messageOf, mostAtWork, readMessage, type A2eMessage, type SentMessage } from '../../protocol/a2e/messages.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import { A2EClientError, asClientError, errorOfReply, refusedBy } from './client-errors.js';
import type { RequestOptions } from './client-options.js';
import { Places } from './client-places.js';

const maxBytes = 67_108_864;

export type Deadline = RequestOptions & { readonly timeoutMs: number };

/** Transport to the gateway. Both methods reject with A2EClientError. */
export interface Channel {
  /** Sends a message and returns the payload of its reply. */
  request(type: string, payload: JsonObject, deadline: Deadline): Promise<JsonObject>;
  /** Sends a message without a reply; resolves when it is sent. */
  send(message: SentMessage, deadline: Deadline): Promise<void>;
  close(): void;
}

export interface Gate {
  readonly url: string;
  readonly token: string;
  readonly out: SafeFetch;
}

export function newMessage(type: string, payload: JsonObject): SentMessage {
  return messageOf(type, { id: newId(), now: systemClock.now() }, payload);
}

/** Sends each message as a separate POST. */
export class PostChannel implements Channel {
  constructor(private readonly gate: Gate) {}

  async request(type: string, payload: JsonObject, deadline: Deadline): Promise<JsonObject> {
    return payloadOf(await this.postMessage(newMessage(type, payload), deadline));
  }

  async send(message: SentMessage, deadline: Deadline): Promise<void> {
    payloadOf(await this.postMessage(message, deadline));
  }

  close(): void {
    // No connection is open between two requests.
  }

  private async postMessage(message: SentMessage, { timeoutMs, signal }: Deadline): Promise<Json> {
    const { url, token, out } = this.gate;
    try {
      const { status, body } = await out.request({
        method: 'POST',
        url: httpOf(url),
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify(message),
        deadlineMs: timeoutMs,
        maxBytes,
        signal,
      });
      const parsed = parseJson(body.toString('utf8'));
      if (status === 200 && parsed.ok) return parsed.value;
      throw refusedBy(status, body.toString('utf8'));
    } catch (thrown) {
      throw asClientError(thrown);
    }
  }
}

/** Events of an open socket besides replies. */
export interface SocketHearer {
  /** Returns the query to append to the URL. */
  query(): string;
  heard(message: A2eMessage): void;
  opened(): void;
  closed(): void;
}

/** Keeps one WebSocket. The first message opens it; after a lost connection the next message opens it again. */
export class SocketChannel implements Channel {
  private readonly waiting = new Map<string, (settled: { reply: A2eMessage } | { lost: A2EClientError }) => void>();
  private readonly slots = new Places(mostAtWork);
  private socket?: Promise<WebSocket>;

  constructor(
    private readonly gate: Gate,
    private readonly listener: SocketHearer,
  ) {}

  async request(type: string, payload: JsonObject, deadline: Deadline): Promise<JsonObject> {
    const message = newMessage(type, payload);
    return withDeadline(deadline, (signal) => this.exchange(message, signal)).finally(() =>
      this.waiting.delete(message.id),
    );
  }

  /** Answers are sent at once and not queued: a call at the gateway waits for them. */
  send(message: SentMessage, deadline: Deadline): Promise<void> {
    return withDeadline(deadline, (signal) =>
      message.req_id === undefined ? this.sendQueued(message, signal) : this.writeMessage(message),
    );
  }

  close(): void {
    void this.socket?.then(
      (socket) => socket.close(1_000),
      () => undefined,
    );
  }

  private async exchange(message: SentMessage, signal: AbortSignal): Promise<JsonObject> {
    const reply = new Promise<A2eMessage>((resolve, reject) => {
      this.waiting.set(message.id, (settled) => ('reply' in settled ? resolve(settled.reply) : reject(settled.lost)));
    });
    reply.catch(() => undefined);
    await this.sendQueued(message, signal);
    return payloadOfReply(await reply);
  }

  /**
   * Sends a message when the gateway has room for it. Its slot becomes free when the reply arrives, even if no
   * request waits for that reply.
   */
  private async sendQueued(message: SentMessage, signal: AbortSignal): Promise<void> {
    await this.slots.takePlace(message.id, signal);
    try {
      await this.writeMessage(message);
    } catch (thrown) {
      this.slots.freePlace(message.id);
      throw thrown;
    }
  }

  private async writeMessage(message: SentMessage): Promise<void> {
    const socket = await this.openSocket();
    await new Promise<void>((resolve, reject) =>
      socket.send(JSON.stringify(message), (cause) => (cause ? reject(asClientError(cause)) : resolve())),
    );
  }

  private openSocket(): Promise<WebSocket> {
    this.socket ??= this.connect().catch((thrown: unknown) => {
      this.socket = undefined;
      throw asClientError(thrown);
    });
    return this.socket;
  }

  private async connect(): Promise<WebSocket> {
    const { url, token, out } = this.gate;
    const headers = { authorization: `Bearer ${token}` };
    const socketUrl = `${url.replace(/^http/i, 'ws')}${this.listener.query()}`;
    const socket = await out.socket(socketUrl, { headers, subprotocol: 'a2e', maxBytes });
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer) => this.receiveText(data.toString('utf8')));
    socket.once('close', () => this.loseSocket());
    this.listener.opened();
    return socket;
  }

  private receiveText(text: string): void {
    const parsed = parseJson(text);
    const read = readMessage(parsed.ok ? parsed.value : undefined);
    if (!read.ok) return;
    const { message } = read;
    if (message.reqId === undefined) return this.listener.heard(message);
    this.waiting.get(message.reqId)?.({ reply: message });
    this.slots.freePlace(message.reqId);
  }

  private loseSocket(): void {
    this.socket = undefined;
    this.slots.clear();
    const lost = new A2EClientError('a2e_connection', 'the gateway ended the connection', { retryable: true });
    for (const settle of [...this.waiting.values()]) settle({ lost });
    this.listener.closed();
  }
}

function payloadOf(reply: Json): JsonObject {
  const read = readMessage(reply);
  if (read.ok) return payloadOfReply(read.message);
  throw new A2EClientError('a2e_invalid', `the gateway did not answer with an A2E message: ${read.reason}`);
}

function payloadOfReply({ ok, error, payload }: A2eMessage): JsonObject {
  if (!ok) throw errorOfReply(error);
  return payload;
}

/** Runs work with a deadline. Rejects with `a2e_timeout`, and with `a2e_canceled` when the caller aborts. */
async function withDeadline<Result>(
  deadline: Deadline,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  return withTimeout(deadline.timeoutMs, [deadline.signal], work, () => deadlineError(deadline));
}

function deadlineError({ timeoutMs, signal }: Deadline): A2EClientError {
  if (signal?.aborted) return new A2EClientError('a2e_canceled', 'the caller canceled the request');
  return new A2EClientError('a2e_timeout', `the gateway did not answer within ${timeoutMs} ms`, { retryable: true });
}
