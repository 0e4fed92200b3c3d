import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { closeCodes, type HeldSocket } from '../../platform/http/streams/held-socket.js';
import { messageOf, mostAtWork, pushType, type A2eMessage, type SentMessage } from '../../protocol/a2e/messages.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import type { ListeningAgent } from '../messages/a2e-call.js';
import { AgentQuestions } from './agent-questions.js';

const mostWatched = 100;
/** Of one server in a minute: each push is remembered. */
const mostSaid = 600;
const minuteMs = 60_000;
const resourceUpdated = 'notifications/resources/updated';

/** What a socket tells of itself while it is open. */
export interface SocketEvents {
  /** A message left that answers nothing: a push, or a question. */
  readonly sent: (message: SentMessage) => void;
  /** Hears of the changes of a resource, until what it returns is called. */
  readonly watch: (server: RegisteredServer, uri: string) => Promise<() => void>;
}

/** An agent on its WebSocket: one that can be pushed to and asked. */
export class AgentSocket implements ListeningAgent {
  readonly id = newId();
  /** The MCP servers it hears of, by their rows: what they are called, and how to stop where a line is kept for it. */
  readonly servers = new Map<string, { serverId: string; leave?: () => void }>();
  private readonly questions = new AgentQuestions(
    (type, payload) => this.send(type, payload),
    (id) => this.push({ method: 'notifications/cancelled', params: { requestId: id } }),
  );
  private readonly watched = new Map<string, { server: RegisteredServer; uri: string; release: () => void }>();
  private said = { since: systemClock.elapsed(), counts: new Map<string, number>() };
  /** Each with what ends it: whoever serves it may never leave the signal. */
  private readonly work = new Map<Promise<void>, AbortController>();

  constructor(
    readonly ctx: CallContext,
    private readonly socket: HeldSocket,
    private readonly capabilities: JsonObject,
    private readonly events: SocketEvents,
  ) {
    socket.once('close', () => this.closed());
  }

  reply(message: JsonObject): void {
    this.socket.write(JSON.stringify(message));
  }

  /** Unasked for: what a server says, or a change of what there is. */
  push(payload: JsonObject): void {
    this.send(pushType, payload);
  }

  /** False for an answer to what nobody asked. */
  answered(answer: A2eMessage): boolean {
    return this.questions.answered(answer);
  }

  /** What `serverRow` says; the changes of a resource only where it asked for them. */
  hear(serverRow: string, method: string, params: JsonObject): void {
    const server = this.servers.get(serverRow);
    if (!server) return;
    if (
      method === resourceUpdated &&
      !(typeof params.uri === 'string' && this.watched.has(keyOf(serverRow, params.uri)))
    )
      return;
    this.pushSaid(server.serverId, method, params);
  }

  async subscribe(server: RegisteredServer, uri: string): Promise<void> {
    const key = keyOf(server.row.id, uri);
    if (this.watched.has(key)) return;
    if (this.watched.size >= mostWatched)
      throw new RialtoError('rate_limited', { message: `an agent may watch ${mostWatched} resources` });
    await this.watch(key, server, uri);
    if (this.watched.has(key) && !this.servers.has(server.row.id))
      this.servers.set(server.row.id, { serverId: server.row.serverId });
  }

  unsubscribe(server: RegisteredServer, uri: string): void {
    const key = keyOf(server.row.id, uri);
    this.watched.get(key)?.release();
    this.watched.delete(key);
  }

  /** Ends the watches that may not be any more. @param moved a server whose other watches go by another line now. */
  async recheck(may: (server: RegisteredServer, uri: string) => Promise<boolean>, moved?: string): Promise<void> {
    for (const [key, { server, uri, release }] of [...this.watched]) {
      const mayGoOn = await may(server, uri);
      if (mayGoOn && server.row.id !== moved) continue;
      release();
      this.watched.delete(key);
      if (mayGoOn) await this.watch(key, server, uri).catch(() => undefined);
    }
  }

  /** Runs the work on one message, so that nobody closes the socket before its reply. Throws `rate_limited` for one too many at once. */
  take(work: (ctx: CallContext) => Promise<void>): void {
    if (this.work.size >= mostAtWork)
      throw new RialtoError('rate_limited', { message: `a socket may have ${mostAtWork} messages at work` });
    const over = new AbortController();
    const ctx = { ...this.ctx, requestId: newId(), signal: over.signal, peer: this.peer };
    const done = work(ctx).finally(() => this.work.delete(done));
    this.work.set(done, over);
  }

  /** Closes it once its messages are answered, or `patience` is over. */
  async leave(patience: Promise<unknown>): Promise<void> {
    await Promise.race([Promise.all(this.work.keys()), patience]);
    await this.socket.close(closeCodes.goingAway, 'the gateway goes away');
  }

  private get peer(): Peer {
    return {
      key: this.id,
      era: 'legacy',
      wantsAlone: Object.keys(this.capabilities).length > 0,
      capabilities: this.capabilities,
      ask: (...question) => this.questions.ask(...question),
      tell: (method, params, server = '') => this.pushSaid(server, method, params),
    };
  }

  /** Its place is taken at once; one that was given up meanwhile is released. Throws as the watching does. */
  private async watch(key: string, server: RegisteredServer, uri: string): Promise<void> {
    const watched = { server, uri, release: (): void => undefined };
    this.watched.set(key, watched);
    try {
      const release = await this.events.watch(server, uri);
      if (this.watched.get(key) !== watched) return release();
      watched.release = release;
    } catch (thrown) {
      if (this.watched.get(key) === watched) this.watched.delete(key);
      throw thrown;
    }
  }

  /** What a server says beyond its measure is lost. */
  private pushSaid(serverId: string, method: string, params: JsonObject): void {
    const now = systemClock.elapsed();
    if (now - this.said.since > minuteMs) this.said = { since: now, counts: new Map() };
    const count = (this.said.counts.get(serverId) ?? 0) + 1;
    this.said.counts.set(serverId, count);
    if (count <= mostSaid) this.push({ server_id: serverId, method, params });
  }

  private send(type: string, payload: JsonObject): string {
    const id = newId();
    const message = messageOf(type, { id, now: systemClock.now() }, payload);
    this.reply(message);
    this.events.sent(message);
    return id;
  }

  private closed(): void {
    for (const over of this.work.values()) over.abort();
    this.questions.close();
    for (const { release } of this.watched.values()) release();
    for (const { leave } of this.servers.values()) leave?.();
    this.watched.clear();
    this.servers.clear();
  }
}

function keyOf(serverRow: string, uri: string): string {
  return `${serverRow} ${uri}`;
}
