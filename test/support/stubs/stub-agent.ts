import { EventEmitter } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { data, follow, serveCard } from './stub-behaviours.js';
import { StubCall, type Behaviour, type CapturedRequest, type StubTask } from './stub-call.js';
import { buildCard, dialectsOf, wellKnownPath, type CardOptions } from './stub-card.js';
import { routeRest, routeRpc, type Operation, type Route } from './stub-route.js';
import { encodeTask, isTerminal, type Wire } from './stub-wire.js';

export interface StubAgentOptions extends CardOptions {
  /** The behaviour for messages; by default it answers data `{ ok: true }`. */
  behaviour?: Behaviour;
  /** The only path with JSON-RPC; other paths answer 404 (AN-29). */
  rpcPath?: string;
  cardPath?: string;
  /** Refuses v1.0 requests without `A2A-Version: 1.0` with -32009, as section 3.6 of the specification demands. */
  strictVersion?: boolean;
  port?: number;
}

/** Starts a scriptable foreign agent on loopback. It is a real HTTP server. */
export async function startStubAgent(options: StubAgentOptions = {}): Promise<StubAgent> {
  const agent = new StubAgent(options);
  await agent.up();
  return agent;
}

/** A running stub agent: the requests that it received, its next behaviour, and its connections. */
export class StubAgent {
  /** All requests except card requests, in order of arrival. */
  readonly requests: CapturedRequest[] = [];
  readonly cardRequests: CapturedRequest[] = [];
  /** Task ids of all cancel requests, known or not. */
  readonly cancels: string[] = [];
  readonly tasks = new Map<string, StubTask>();
  activeRequests = 0;
  peakActiveRequests = 0;
  /** Connections accepted since the start. */
  connectionsOpened = 0;
  /** The served card. A test may change or replace it. */
  card: Wire = {};

  private port: number;
  private taskCount = 0;
  private closing = new AbortController();
  private readonly behaviours = new Map<Operation, Behaviour>();
  private readonly sockets = new Set<Socket>();
  private readonly events = new EventEmitter().setMaxListeners(0);
  private readonly server: Server;

  constructor(private readonly options: StubAgentOptions) {
    this.port = options.port ?? 0;
    this.server = createServer((request, response) => void this.serve(request, response));
    this.server.on('connection', (socket) => this.track(socket));
    this.set(options.behaviour ?? data({ ok: true }));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get cardUrl(): string {
    return `${this.url}${this.cardPath}`;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.sockets.size;
  }

  /**
   * Scripts messages, plain and streamed, or one other operation. `undefined` restores the default of the operation.
   */
  set(behaviour: Behaviour | undefined, operation?: Operation): void {
    const operations: Operation[] = operation ? [operation] : ['send', 'stream'];
    for (const each of operations) {
      if (behaviour) this.behaviours.set(each, behaviour);
      else this.behaviours.delete(each);
    }
  }

  /** Stops listening and closes every connection. `up` starts the agent again on the same port. */
  async down(): Promise<void> {
    if (!this.server.listening) return;
    this.closing.abort();
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.sockets.forEach((socket) => socket.destroy());
    await closed;
  }

  async up(): Promise<void> {
    this.closing = new AbortController();
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(this.port, '127.0.0.1', () => resolve(void this.server.off('error', reject)));
    });
    if (this.port !== 0 && Object.keys(this.card).length > 0) return;
    this.port = (this.server.address() as AddressInfo).port;
    this.card = buildCard(this.options, this.url, this.rpcPath);
  }

  close(): Promise<void> {
    return this.down();
  }

  /** Resolves with all requests when at least `count` have arrived. */
  async waitForRequests(count: number, timeoutMs?: number): Promise<CapturedRequest[]> {
    await this.until(() => this.requests.length >= count, `${count} requests`, timeoutMs);
    return this.requests;
  }

  /** Resolves when clients have aborted at least `count` requests. */
  async closed(count = 1, timeoutMs?: number): Promise<CapturedRequest[]> {
    const aborted = () => this.requests.filter((request) => request.aborted);
    await this.until(() => aborted().length >= count, `${count} aborted requests`, timeoutMs);
    return aborted();
  }

  /** Resolves when at least `count` cancels have arrived. */
  async waitForCancels(count = 1, timeoutMs?: number): Promise<string[]> {
    await this.until(() => this.cancels.length >= count, `${count} cancels`, timeoutMs);
    return this.cancels;
  }

  /** Resolves when no request is in progress. */
  idle(timeoutMs?: number): Promise<void> {
    return this.until(() => this.activeRequests === 0, 'no active request', timeoutMs);
  }

  /** Resolves when `check` returns true after an event of this agent. Throws an error with `what` after `timeoutMs`. */
  async until(check: () => boolean, what: string, timeoutMs = 120_000): Promise<void> {
    if (check()) return;
    await new Promise<void>((resolve, reject) => {
      const recheck = () => check() && done(resolve);
      const timer = setTimeout(
        () => done(() => reject(new Error(`the stub agent waited ${timeoutMs} ms without success for ${what}`))),
        timeoutMs,
      );
      const done = (then: () => void) => {
        clearTimeout(timer);
        this.events.off('changed', recheck);
        then();
      };
      this.events.on('changed', recheck);
    });
  }

  private get rpcPath(): string {
    return this.options.rpcPath ?? '/';
  }

  private get cardPath(): string {
    return this.options.cardPath ?? wellKnownPath(this.options.card ?? 'v1');
  }

  private track(socket: Socket): void {
    this.connectionsOpened += 1;
    this.sockets.add(socket);
    socket.once('close', () => {
      this.sockets.delete(socket);
      this.events.emit('changed');
    });
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    const closing = this.closing.signal;
    this.activeRequests += 1;
    this.peakActiveRequests = Math.max(this.peakActiveRequests, this.activeRequests);
    const received: { call?: StubCall } = {};
    response.once('close', () => {
      const { call } = received;
      if (call && !response.writableFinished && !call.cut && !closing.aborted) call.request.aborted = true;
      gone.abort();
      this.activeRequests -= 1;
      this.events.emit('changed');
    });
    const rawBody = await readBody(request).catch(() => undefined);
    if (rawBody === undefined) return;
    const call = this.receive(request, response, rawBody, AbortSignal.any([gone.signal, closing]));
    received.call = call;
    this.events.emit('changed');
    await this.answer(call);
  }

  private receive(request: IncomingMessage, response: ServerResponse, rawBody: string, gone: AbortSignal): StubCall {
    const path = request.url ?? '/';
    const method = request.method ?? 'GET';
    const json = parse(rawBody);
    const route = this.route(method, path.split('?')[0]!, json);
    const { operation, dialect } = route;
    const { headers } = request;
    const at = performance.now();
    const captured = { method, path, headers, rawBody, json, operation, dialect, at, aborted: false };
    (operation === 'card' ? this.cardRequests : this.requests).push(captured);
    return new StubCall(captured, response, route, this.taskOf(route), this.card, gone);
  }

  private route(method: string, pathname: string, json: unknown): Route {
    const elsewhere: Route = { operation: 'unknown', dialect: dialectsOf(this.options)[0]!, params: {} };
    if (pathname === this.cardPath || pathname.startsWith('/hop/')) return { ...elsewhere, operation: 'card' };
    if (method === 'POST' && pathname === this.rpcPath) return routeRpc(json);
    return routeRest(method, pathname, json) ?? elsewhere;
  }

  private taskOf({ taskId, operation }: Route): StubTask {
    const known = this.tasks.get(taskId ?? '');
    if (known) return known;
    this.taskCount += operation === 'card' ? 0 : 1;
    const id = taskId ?? `stub-task-${this.taskCount}`;
    return { id, contextId: `context-of-${id}`, state: 'submitted', artifacts: [], canceled: new AbortController() };
  }

  private async answer(call: StubCall): Promise<void> {
    const behaviour = this.refusal(call) ?? this.behaviourFor(call);
    try {
      await behaviour(call);
    } catch (error) {
      if (call.gone.aborted) return;
      if (!call.response.headersSent) call.send(500, `the stub itself failed: ${String(error)}`);
      else call.response.destroy();
    }
  }

  private refusal({ request, route }: StubCall): Behaviour | undefined {
    if (route.operation === 'card') return undefined;
    const scripted = this.behaviours.has(route.operation);
    if (route.operation === 'unknown' && request.method === 'POST' && request.path === this.rpcPath) {
      if (request.json === undefined) return (call) => call.error(-32700, 'Parse error');
      return scripted ? undefined : (call) => call.error(-32601, 'Method not found');
    }
    if (route.operation === 'unknown') return scripted ? undefined : (call) => call.send(404, 'not here');
    if (!dialectsOf(this.options).includes(route.dialect)) return (call) => call.error(-32601, 'Method not found');
    const versioned = route.dialect.startsWith('v1') && this.options.strictVersion !== false;
    if (versioned && !/^1\.0(\.\d+)?$/.test(String(request.headers['a2a-version']))) {
      return (call) => call.error(-32009, 'A2A-Version 1.0 expected');
    }
    return undefined;
  }

  private behaviourFor(call: StubCall): Behaviour {
    const { operation, taskId } = call.route;
    const scripted = this.behaviours.get(operation);
    const known = taskId !== undefined && this.tasks.has(taskId);
    if (operation === 'cancel') {
      this.cancels.push(taskId ?? '');
      this.events.emit('changed');
    }
    if (operation === 'send' || operation === 'stream') return this.messageBehaviour(call, known) ?? scripted!;
    if (scripted) return scripted;
    if (['get', 'cancel', 'subscribe'].includes(operation) && !known) {
      return (unknown) => unknown.error(-32001, `Task not found: ${taskId}`);
    }
    return this.standard[operation] ?? ((other) => other.error(-32004, 'Not supported'));
  }

  private messageBehaviour(call: StubCall, known: boolean): Behaviour | undefined {
    const { task } = call;
    if (call.route.taskId !== undefined && !known) return () => call.error(-32001, `Task not found: ${task.id}`);
    if (known && isTerminal(task.state)) return () => call.error(-32004, `Task ${task.id} has ended`);
    this.tasks.set(task.id, task);
    const answer = task.onMessage;
    delete task.onMessage;
    return answer;
  }

  private readonly standard: Partial<Record<Operation, Behaviour>> = {
    card: serveCard,
    get: (call) => (call.task.onGet ? call.task.onGet(call) : call.result(call.encodedTask())),
    subscribe: follow,
    cancel: (call) => {
      if (isTerminal(call.task.state)) return call.error(-32002, `Task ${call.task.id} has ended`);
      call.task.canceled.abort();
      delete call.task.onGet;
      return call.settle({ state: 'canceled' });
    },
    list: (call) => {
      const tasks = [...this.tasks.values()].map((task) => encodeTask(call.route.dialect, task));
      call.result({ tasks, nextPageToken: '', pageSize: 50, totalSize: tasks.length });
    },
    push: (call) => call.result({ id: 'stub-push', ...call.route.params }),
    extendedCard: (call) => call.result(call.card),
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}
