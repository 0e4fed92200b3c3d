import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { TestGateway } from '../gateway/gateway.js';

let messages = 0;

/** A message with an id of its own. */
export function message(type: string, payload: object = {}): { type: string; id: string; version: string } {
  return { type, id: `m${++messages}`, version: '1.0', ...payload };
}

/** Messages by POST, and what is answered. */
export function poster(gateway: () => TestGateway) {
  const post = async (body: unknown, token?: string | null) => (await gateway().call('POST', '/a2e', body, token)).body;
  return { post, say: (type: string, payload: object = {}, token?: string) => post(message(type, payload), token) };
}

/** Takes every MCP server of the default org away. */
export async function unregisterAll(gateway: TestGateway): Promise<void> {
  const { body } = await gateway.call('GET', '/api/mcp/servers');
  for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
}

type Message = Record<string, any>;

/** An agent on a WebSocket: what it says is answered, what it is told and asked is kept. */
export interface SocketAgent {
  readonly socket: WebSocket;
  readonly pushes: Message[];
  readonly asked: Message[];
  /** Every message that came. */
  readonly heard: Message[];
  say(type: string, payload?: object): Promise<Message>;
  send(value: unknown): void;
  /** The code that it was closed with. */
  readonly closed: Promise<number>;
  close(): Promise<void>;
}

/** @param answer gives the answer to a question, or nothing when there is none. */
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
    const came = JSON.parse(data.toString()) as Message;
    heard.push(came);
    if (came.req_id !== undefined) return waiting.get(came.req_id)?.(came);
    if (came.type === 'mcp/server/push') return void pushes.push(came);
    asked.push(came);
    const said = answer?.(came);
    if (said) send({ ...message(came.type.replace(/req$/, 'resp')), req_id: came.id, ...said });
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
