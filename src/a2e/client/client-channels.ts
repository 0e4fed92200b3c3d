import type { WebSocket } from 'ws';
import { systemClock } from '../../kernel/clock.js';
import { newId } from '../../kernel/ids.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { timeoutSignal, raceSignal } from '../../kernel/abort.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { httpOf } from '../../platform/http/outbound/safe-socket.js';
import { messageOf, mostAtWork, readMessage, type A2eMessage, type SentMessage } from '../../protocol/a2e/messages.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import { A2EClientError, asClientError, errorOfReply, refusedBy } from './client-errors.js';
import type { RequestOptions } from './client-options.js';
import { Places } from './client-places.js';

const maxBytes = 67_108_864;

export type Deadline = RequestOptions & { readonly timeoutMs: number };

/** A way to the gateway. Both methods reject with A2EClientError. */
export interface Channel {
  /** The payload of the reply. */
  request(type: string, payload: JsonObject, deadline: Deadline): Promise<JsonObject>;
  /** Resolves when the message left; nobody waits for a reply. */
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

/** Each message a POST of its own. */
export class PostChannel implements Channel {
  constructor(private readonly gate: Gate) {}

  async request(type: string, payload: JsonObject, deadline: Deadline): Promise<JsonObject> {
    return payloadOf(await this.post(newMessage(type, payload), deadline));
  }

  async send(message: SentMessage, deadline: Deadline): Promise<void> {
    payloadOf(await this.post(message, deadline));
  }

  close(): void {
    // There is nothing open between two requests.
  }

  private async post(message: SentMessage, { timeoutMs, signal }: Deadline): Promise<Json> {
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

/** What an open socket hears besides replies. */
export interface SocketHearer {
  /** Put behind the address. */
  query(): string;
  heard(message: A2eMessage): void;
  opened(): void;
  closed(): void;
}

/** One WebSocket, opened by the first message, and again by the next one when it was lost. */
export class SocketChannel implements Channel {
  private readonly waiting = new Map<string, (settled: { reply: A2eMessage } | { lost: A2EClientError }) => void>();
  private readonly places = new Places(mostAtWork);
  private socket?: Promise<WebSocket>;

  constructor(
    private readonly gate: Gate,
    private readonly hearer: SocketHearer,
  ) {}

  async request(type: string, payload: JsonObject, deadline: Deadline): Promise<JsonObject> {
    const message = newMessage(type, payload);
    return within(deadline, (signal) => this.exchange(message, signal)).finally(() => this.waiting.delete(message.id));
  }

  /** Answers leave at once: a call at the gateway waits for them. */
  send(message: SentMessage, deadline: Deadline): Promise<void> {
    return within(deadline, (signal) =>
      message.req_id === undefined ? this.sendInTurn(message, signal) : this.write(message),
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
    await this.sendInTurn(message, signal);
    return payloadOfReply(await reply);
  }

  /** Sends a message when the gateway has room for it; its place is free again when the reply came, whoever waits for that. */
  private async sendInTurn(message: SentMessage, signal: AbortSignal): Promise<void> {
    await this.places.take(message.id, signal);
    try {
      await this.write(message);
    } catch (thrown) {
      this.places.free(message.id);
      throw thrown;
    }
  }

  private async write(message: SentMessage): Promise<void> {
    const socket = await this.open();
    await new Promise<void>((resolve, reject) =>
      socket.send(JSON.stringify(message), (cause) => (cause ? reject(asClientError(cause)) : resolve())),
    );
  }

  private open(): Promise<WebSocket> {
    this.socket ??= this.connect().catch((thrown: unknown) => {
      this.socket = undefined;
      throw asClientError(thrown);
    });
    return this.socket;
  }

  private async connect(): Promise<WebSocket> {
    const { url, token, out } = this.gate;
    const headers = { authorization: `Bearer ${token}` };
    const at = `${url.replace(/^http/i, 'ws')}${this.hearer.query()}`;
    const socket = await out.socket(at, { headers, subprotocol: 'a2e', maxBytes });
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer) => this.heard(data.toString('utf8')));
    socket.once('close', () => this.lost());
    this.hearer.opened();
    return socket;
  }

  private heard(text: string): void {
    const parsed = parseJson(text);
    const read = readMessage(parsed.ok ? parsed.value : undefined);
    if (!read.ok) return;
    const { message } = read;
    if (message.reqId === undefined) return this.hearer.heard(message);
    this.waiting.get(message.reqId)?.({ reply: message });
    this.places.free(message.reqId);
  }

  private lost(): void {
    this.socket = undefined;
    this.places.clear();
    const lost = new A2EClientError('a2e_connection', 'the gateway ended the connection', { retryable: true });
    for (const settle of [...this.waiting.values()]) settle({ lost });
    this.hearer.closed();
  }
}

function payloadOf(reply: Json): JsonObject {
  const read = readMessage(reply);
  if (read.ok) return payloadOfReply(read.message);
  throw new A2EClientError('a2e_invalid', `the gateway answered no message: ${read.reason}`);
}

function payloadOfReply({ ok, error, payload }: A2eMessage): JsonObject {
  if (!ok) throw errorOfReply(error);
  return payload;
}

/** The result of the work within the deadline. Rejects with `a2e_timeout`, and `a2e_canceled` when the caller gives up. */
async function within<Result>(deadline: Deadline, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const patience = timeoutSignal(deadline.timeoutMs, [deadline.signal]);
  const { signal } = patience;
  try {
    return await raceSignal(signal, work(signal), () => tooLate(deadline));
  } finally {
    patience.end();
  }
}

function tooLate({ timeoutMs, signal }: Deadline): A2EClientError {
  if (signal?.aborted) return new A2EClientError('a2e_canceled', 'the caller gave up');
  return new A2EClientError('a2e_timeout', `the gateway did not answer within ${timeoutMs} ms`, { retryable: true });
}
