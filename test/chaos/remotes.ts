import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../support/fuzz/random.js';
import type { History, RemoteSend } from './history.js';

type Wire = Record<string, any>;

interface RemoteTask {
  readonly id: string;
  readonly payload: string;
  readonly endsAt: number;
  canceled?: boolean;
}

/** A foreign server on loopback; it ends with the run. */
export class Remote {
  private constructor(
    readonly url: string,
    private readonly server: Server,
  ) {}

  static async start(answer: (request: IncomingMessage, response: ServerResponse, text: string) => unknown) {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => void chunks.push(chunk));
      request.once('end', () => answer(request, response, Buffer.concat(chunks).toString('utf8')));
      request.once('error', () => undefined);
      response.on('error', () => undefined);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Remote(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, server);
  }

  /** Returns the number of open sockets. */
  connections(): Promise<number> {
    return new Promise((resolve) => this.server.getConnections((_, count) => resolve(count)));
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }
}

/**
 * Starts a foreign agent (A2A v1.0, JSON-RPC) that records every message and creates one task per `messageId`. The text
 * of a message sets the time for the answer and for the work: `answer=200 work=1500`.
 */
export function startForeignAgent(history: History): Promise<Remote> {
  const byMessage = new Map<string, RemoteTask>();
  const byId = new Map<string, RemoteTask>();
  const send = async (response: ServerResponse, id: unknown, message: Wire): Promise<void> => {
    const [part] = message.parts as Wire[];
    const payload = String(part?.text ?? part?.data?.payload ?? '');
    const seen: RemoteSend = { messageId: message.messageId, payload, at: Date.now() };
    history.remoteSends.push(seen);
    const task = byMessage.get(message.messageId) ?? {
      id: `remote-${byId.size + 1}`,
      payload,
      endsAt: Date.now() + numberIn(payload, 'answer') + numberIn(payload, 'work'),
    };
    byMessage.set(message.messageId, task);
    byId.set(task.id, task);
    await sleep(numberIn(payload, 'answer'));
    if (response.destroyed) return;
    reply(response, { jsonrpc: '2.0', id, result: { task: taskOf(task) } });
    response.once('finish', () => (seen.answeredAt = Date.now()));
  };
  const start = Remote.start((request, response, text) => {
    if (request.method === 'GET') return reply(response, cardOf(`http://${request.headers.host}/`));
    const { id, method, params } = JSON.parse(text) as Wire;
    if (method === 'SendMessage') return send(response, id, params.message);
    const task = byId.get(params.id);
    if (!task) return reply(response, { jsonrpc: '2.0', id, error: { code: -32001, message: 'Task not found' } });
    if (method === 'CancelTask' && Date.now() < task.endsAt) task.canceled = true;
    return reply(response, { jsonrpc: '2.0', id, result: taskOf(task) });
  });
  return start;
}

/**
 * Starts a server that acts as all webhook receivers and records every post. The path selects the behaviour: `/slow/…`
 * answers late, `/flaky/…` refuses some posts, `/refuse-once/…` refuses the first attempt of each, `/redirect-once/…`
 * redirects it.
 */
export function startReceivers(history: History, random: Random): Promise<Remote> {
  const refused = new Set<string>();
  return Remote.start(async (request, response, text) => {
    const [, kind = ''] = (request.url ?? '').split('/');
    const webhookId = String(request.headers['webhook-id']);
    if (kind === 'trap') {
      history.forbidden.push({ what: 'a redirect of a receiver was followed', happened: true });
      return reply(response, {});
    }
    const isFirst = !refused.has(webhookId);
    refused.add(webhookId);
    const refuses = kind.endsWith('-once') ? isFirst : kind === 'flaky' && random.chance(0.1);
    const refusal = kind === 'redirect-once' ? 307 : 503;
    const status = refuses ? refusal : 200;
    const post = { webhookId, at: Date.now(), status, endedAt: undefined as number | undefined };
    history.posts.push(post);
    note(history, text, `webhook ${request.url}`);
    if (kind === 'slow') await sleep(600);
    response.once('close', () => (post.endedAt = Date.now()));
    response.writeHead(status, status === 307 ? { location: '/trap/' } : {}).end();
  });
}

/** Records the state in a webhook, as one more observer. */
function note(history: History, text: string, by: string): void {
  const body = JSON.parse(text) as Wire;
  const state = body.statusUpdate?.status?.state as string | undefined;
  if (state !== undefined)
    history.sightings.push({ by, taskId: body.statusUpdate.taskId, state: plainState(state), at: Date.now() });
}

/** Converts `TASK_STATE_INPUT_REQUIRED` to `input-required`, the form in the rows. */
export function plainState(state: string): string {
  return state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-');
}

function taskOf({ id, payload, endsAt, canceled }: RemoteTask): Wire {
  const isOver = Date.now() >= endsAt;
  const state = canceled ? 'CANCELED' : isOver ? 'COMPLETED' : 'WORKING';
  const artifacts = isOver && !canceled ? [{ artifactId: 'answer', parts: [{ text: payload }] }] : [];
  return { id, contextId: `context-of-${id}`, status: { state: `TASK_STATE_${state}` }, artifacts };
}

function cardOf(url: string): Wire {
  const modes = ['application/json', 'text/plain'];
  return {
    name: 'Far away',
    description: 'Works slowly and remembers everything.',
    version: '1.0.0',
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [{ id: 'work', name: 'work', description: 'Works.', tags: ['work'] }],
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  };
}

function numberIn(payload: string, name: string): number {
  return Number(new RegExp(`${name}=(\\d+)`).exec(payload)?.[1] ?? 0);
}

function reply(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
