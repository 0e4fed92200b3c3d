import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { TestGateway } from '../gateway/gateway.js';

let messages = 0;

/** Builds a message with a unique id. */
export function message(type: string, payload: object = {}): { type: string; id: string; version: string } {
  return { type, id: `m${++messages}`, version: '1.0', ...payload };
}

/** Sends messages by POST and returns the answers. */
export function poster(gateway: () => TestGateway) {
  const post = async (body: unknown, token?: string | null) => (await gateway().call('POST', '/a2e', body, token)).body;
  return { post, say: (type: string, payload: object = {}, token?: string) => post(message(type, payload), token) };
}

/** Unregisters every MCP server of the default org. */
export async function unregisterAll(gateway: TestGateway): Promise<void> {
  const { body } = await gateway.call('GET', '/api/mcp/servers');
  for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
}

type Message = Record<string, any>;

/** An agent on a WebSocket. `say` resolves with the answer; pushes and questions of the gateway are collected. */
export interface SocketAgent {
  readonly socket: WebSocket;
  readonly pushes: Message[];
  readonly asked: Message[];
  /** All messages received. */
  readonly heard: Message[];
  say(type: string, payload?: object): Promise<Message>;
  send(value: unknown): void;
  /** The close code of the connection. */
  readonly closed: Promise<number>;
  close(): Promise<void>;
}

/**
 * Connects an agent.
 * @param answer returns the answer to a question, or undefined to leave it unanswered.
 */
export async function connectAgent(
  { url, token }: Pick<TestGateway, 'url' | 'token'>,
  { answer, query = '' }: { answer?: (question: Message) => Message | undefined; query?: string } = {},
): Promise<SocketAgent> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/a2e${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  const waiting = new Map<string, (reply: Message) => void>();
  const [pushes, asked, heard]: [Message[], Message[], Message[]] = [[], [], []];
  const send = (value: unknown): void => socket.send(typeof value === 'string' ? value : JSON.stringify(value));
  socket.on('message', (data: Buffer) => {
    const received = JSON.parse(data.toString()) as Message;
    heard.push(received);
    if (received.req_id !== undefined) return waiting.get(received.req_id)?.(received);
    if (received.type === 'mcp/server/push') return void pushes.push(received);
    asked.push(received);
    const reply = answer?.(received);
    if (reply) send({ ...message(received.type.replace(/req$/, 'resp')), req_id: received.id, ...reply });
  });
  await once(socket, 'open');
  return {
    socket,
    pushes,
    asked,
    heard,
    closed,
    send,
    say: (type, payload) =>
      new Promise((resolve) => {
        const request = message(type, payload);
        waiting.set(request.id, resolve);
        send(request);
      }),
    close: async () => {
      socket.close();
      await closed;
    },
  };
}
