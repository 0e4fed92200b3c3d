import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { OrderedWork } from '../../platform/ordered-work.js';
import { stringifyLong } from '../../platform/turns.js';
import { closeCodes, type HeldSocket } from '../../platform/http/streams/held-socket.js';
import { messageOf, mostAtWork, pushType, type A2eMessage, type SentMessage } from '../../protocol/a2e/messages.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import type { ListeningAgent } from '../messages/a2e-call.js';
import { AgentQuestions } from './agent-questions.js';

const maxWatched = 100;
/** Pushes of one server to one agent in a minute; limited because each push is recorded. */
const maxPushesPerMinute = 600;
const minuteMs = 60_000;
const resourceUpdated = 'notifications/resources/updated';

/** Callbacks of an open socket. */
export interface SocketEvents {
  /** Called for each message that is not a reply: a push or a question. */
  readonly sent: (message: SentMessage) => void;
  /** Watches the changes of a resource, until the returned function is called. */
  readonly watch: (server: RegisteredServer, uri: string) => Promise<() => void>;
}

/** Agent on a WebSocket, which can receive pushes and questions. */
export class AgentSocket implements ListeningAgent {
  readonly id = newId();
  /**
   * MCP servers that the agent gets notifications of, by the ids of their rows: the server id, and a function that
   * releases the connection if one is held for the agent.
   */
  readonly servers = new Map<string, { serverId: string; leave?: () => void }>();
  private readonly questions = new AgentQuestions(
    (type, payload) => this.sendEvent(type, payload),
    (id) => this.push({ method: 'notifications/cancelled', params: { requestId: id } }),
  );
  private readonly watched = new Map<string, { server: RegisteredServer; uri: string; release: () => void }>();
  private readonly written = new OrderedWork(() => this.socket.destroy());
  private pushes = { since: systemClock.elapsed(), counts: new Map<string, number>() };
  /** Running messages, each with its own controller, because handlers may never remove their abort listeners. */
  private readonly running = new Map<Promise<void>, AbortController>();

  constructor(
    readonly ctx: CallContext,
    private readonly socket: HeldSocket,
    private readonly capabilities: JsonObject,
    private readonly events: SocketEvents,
  ) {
    socket.once('close', () => this.releaseAll());
  }

  /** Sends a message after those before it. Resolves when it is written: a long one takes several turns. */
  reply(message: JsonObject): Promise<void> | undefined {
    return this.written.run(() => {
      const text = stringifyLong(message);
      if (typeof text === 'string') return this.socket.write(text);
      return text.then((long) => this.socket.write(long));
    });
  }

  /** Sends a push: a notification of a server, or a change of the servers. */
  push(payload: JsonObject): void {
    this.sendEvent(pushType, payload);
  }

  /** Takes an answer. False when it belongs to no open question. */
  takeAnswer(answer: A2eMessage): boolean {
    return this.questions.takeAnswer(answer);
  }

  /** Passes on a notification of the server with this row id; changes of a resource only after a subscription. */
  passNotification(serverRow: string, method: string, params: JsonObject): void {
    const server = this.servers.get(serverRow);
    if (!server) return;
    if (
      method === resourceUpdated &&
      !(typeof params.uri === 'string' && this.watched.has(watchKey(serverRow, params.uri)))
    )
      return;
    this.pushLimited(server.serverId, method, params);
  }

  async subscribe(server: RegisteredServer, uri: string): Promise<void> {
    const key = watchKey(server.row.id, uri);
    if (this.watched.has(key)) return;
    if (this.watched.size >= maxWatched)
      throw new RialtoError('rate_limited', { message: `an agent may watch at most ${maxWatched} resources` });
    await this.openWatch(key, server, uri);
    if (this.watched.has(key) && !this.servers.has(server.row.id))
      this.servers.set(server.row.id, { serverId: server.row.serverId });
  }

  unsubscribe(server: RegisteredServer, uri: string): void {
    const key = watchKey(server.row.id, uri);
    this.watched.get(key)?.release();
    this.watched.delete(key);
  }

  /**
   * Ends the watches that are no longer allowed.
   *
   * @param moved server with a new connection: its other watches are opened again there.
   */
  async recheck(may: (server: RegisteredServer, uri: string) => Promise<boolean>, moved?: string): Promise<void> {
    for (const [key, { server, uri, release }] of [...this.watched]) {
      const isAllowed = await may(server, uri);
      if (isAllowed && server.row.id !== moved) continue;
      release();
      this.watched.delete(key);
      if (isAllowed) await this.openWatch(key, server, uri).catch(() => undefined);
    }
  }

  /**
   * Runs the work of one message, so that the socket stays open until its reply. Throws `rate_limited` when too many
   * messages run.
   */
  runMessage(handle: (ctx: CallContext) => Promise<void>): void {
    if (this.running.size >= mostAtWork)
      throw new RialtoError('rate_limited', {
        message: `a socket may have at most ${mostAtWork} messages without a reply; wait for replies`,
      });
    const controller = new AbortController();
    const ctx = { ...this.ctx, requestId: newId(), signal: controller.signal, peer: this.peer };
    const done = handle(ctx).finally(() => this.running.delete(done));
    this.running.set(done, controller);
  }

  /** Closes the socket when its messages are answered, or when `timeout` resolves. */
  async closeWhenIdle(timeout: Promise<unknown>): Promise<void> {
    await Promise.race([Promise.all(this.running.keys()), timeout]);
    await this.socket.close(closeCodes.goingAway, 'the gateway is stopping');
  }

  private get peer(): Peer {
    return {
      key: this.id,
      era: 'legacy',
      wantsAlone: Object.keys(this.capabilities).length > 0,
      capabilities: this.capabilities,
      ask: (...question) => this.questions.askAgent(...question),
      tell: (method, params, server = '') => this.pushLimited(server, method, params),
    };
  }

  /**
   * Opens a watch. Counts it at once; when it is ended before it is open, releases it. Throws the errors of the
   * watch.
   */
  private async openWatch(key: string, server: RegisteredServer, uri: string): Promise<void> {
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

  /** Drops notifications of a server beyond its limit. */
  private pushLimited(serverId: string, method: string, params: JsonObject): void {
    const now = systemClock.elapsed();
    if (now - this.pushes.since > minuteMs) this.pushes = { since: now, counts: new Map() };
    const count = (this.pushes.counts.get(serverId) ?? 0) + 1;
    this.pushes.counts.set(serverId, count);
    if (count <= maxPushesPerMinute) this.push({ server_id: serverId, method, params });
  }

  private sendEvent(type: string, payload: JsonObject): string {
    const id = newId();
    const message = messageOf(type, { id, now: systemClock.now() }, payload);
    void this.reply(message);
    this.events.sent(message);
    return id;
  }

  private releaseAll(): void {
    for (const controller of this.running.values()) controller.abort();
    this.questions.withdrawAll();
    for (const { release } of this.watched.values()) release();
    for (const { leave } of this.servers.values()) leave?.();
    this.watched.clear();
    this.servers.clear();
  }
}

function watchKey(serverRow: string, uri: string): string {
  return `${serverRow} ${uri}`;
}
