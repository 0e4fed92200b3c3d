import { Inject, Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import type { WebSocket } from 'ws';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import { HeldSocket } from '../../platform/http/streams/held-socket.js';
import { SseStreams } from '../../platform/http/streams/sse-streams.js';
import { OrderedWork } from '../../platform/ordered-work.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { longText, parseLongJson } from '../../platform/turns.js';
import { isAnswer, readMessage } from '../../protocol/a2e/messages.js';
import { parseJson, type ParsedJson } from '../../protocol/jsonrpc.js';
import { AgentServers } from './agent-servers.js';
import { AgentSocket } from './agent-socket.js';
import { MessageAudit } from '../messages/message-audit.js';
import { MessageDispatcher } from '../messages/message-dispatcher.js';

/** How long running messages may take while the process stops, in milliseconds. */
const drainMs = 25_000;

/** Agents with a WebSocket to this process: handles their messages, and closes the sockets when the process stops. */
@Injectable()
export class AgentSockets implements BeforeApplicationShutdown {
  private readonly agents = new Set<AgentSocket>();
  private isLeaving = false;

  constructor(
    private readonly messages: MessageDispatcher,
    private readonly servers: AgentServers,
    private readonly streams: SseStreams,
    private readonly audit: MessageAudit,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Throws `unavailable` while the process stops. */
  requireOpen(): void {
    if (this.isLeaving) throw new RialtoError('unavailable', { message: 'the gateway is stopping' });
  }

  /**
   * Adds the socket of an agent, until it closes.
   *
   * @param admit counts one message against the limits, and throws when a limit is exceeded.
   */
  addSocket(ctx: CallContext, socket: WebSocket, capabilities: JsonObject, admit: () => void): void {
    const held = new HeldSocket(socket);
    try {
      this.streams.hold(ctx, held, { beats: false });
    } catch (thrown) {
      return void held.close(1_013, RialtoError.from(thrown).message);
    }
    const agent = new AgentSocket(ctx, held, capabilities, {
      sent: ({ type, id }) => this.recordSent(agent, type, id),
      watch: (server, uri) => this.servers.watchResource(ctx, server, uri),
    });
    this.agents.add(agent);
    held.once('close', () => {
      this.agents.delete(agent);
      this.servers.disconnect(agent);
    });
    const frames = new OrderedWork((err) => this.log.error({ err }, 'a frame of an agent was not handled'));
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      const read = frames.run(() => this.receiveData(agent, isBinary ? undefined : data, admit));
      // No more frames while a long one is read, so that they do not fill the memory.
      if (data.length < longText || !read) return;
      socket.pause();
      void read.then(() => socket.resume());
    });
    this.servers.connect(agent);
  }

  /** Closes all sockets before the HTTP server closes, because that waits for each socket. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isLeaving = true;
    const drain = new AbortController();
    const timeout = new Promise((resolve) => drain.signal.addEventListener('abort', resolve));
    const timer = setTimeout(() => drain.abort(), drainMs);
    await Promise.all([...this.agents].map((agent) => agent.closeWhenIdle(timeout)));
    clearTimeout(timer);
  }

  private receiveData(agent: AgentSocket, data: Buffer | undefined, admit: () => void): void | Promise<void> {
    const text = data?.toString('utf8') ?? '';
    if (text.length < longText) return this.receiveValue(agent, parseJson(text), admit);
    return parseLongJson(text).then((parsed) => this.receiveValue(agent, parsed, admit));
  }

  private receiveValue(agent: AgentSocket, parsed: ParsedJson, admit: () => void): void {
    if (!this.agents.has(agent)) return; // it disconnected while its frame was read
    const value: unknown = parsed.ok ? parsed.value : undefined;
    if (this.takeAnswer(agent, value)) return;
    try {
      this.requireOpen();
      admit();
      agent.runMessage(async (ctx) => await agent.reply(await this.messages.answerMessage(ctx, value, agent)));
    } catch (thrown) {
      void agent.reply(this.messages.turnAway(value, RialtoError.from(thrown)));
    }
  }

  /**
   * Takes an answer to an open question. It is not counted and not refused, because a running call waits for it.
   * False for any other message.
   */
  private takeAnswer(agent: AgentSocket, value: unknown): boolean {
    const parsed = readMessage(value);
    if (!parsed.ok || !isAnswer(parsed.message) || !agent.takeAnswer(parsed.message)) return false;
    const { spelling: type, id, reqId, ok } = parsed.message;
    const error = ok ? undefined : refusalIn(parsed.message.error);
    const ctx = { ...agent.ctx, requestId: newId() };
    void this.audit.recordMessages(ctx, [{ type, direction: 'in', id, reqId, error }]).catch(this.unrecorded);
    return true;
  }

  private recordSent({ ctx }: AgentSocket, type: string, id: string): void {
    void this.audit.recordMessages(ctx, [{ type, direction: 'out', id }]).catch(this.unrecorded);
  }

  private readonly unrecorded = (err: unknown): void => {
    this.log.error({ err }, 'audit of a message failed');
  };
}

/** Error code in the refusal of an agent. */
function refusalIn({ code }: JsonObject): string {
  return typeof code === 'string' && /^mcp_[a-z_]{1,40}$/.test(code) ? code : 'mcp_sampling_refused';
}

/**
 * Capabilities that an agent declares with `?capabilities=sampling,roots`, which may be empty; without the parameter
 * both.
 */
export function capabilitiesOf(query: URLSearchParams): JsonObject {
  const named = query.get('capabilities')?.split(',');
  const all = { sampling: {}, roots: {} };
  if (!named) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => named.includes(name)));
}
