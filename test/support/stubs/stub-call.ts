import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Route } from './stub-route.js';
import {
  applyPayload,
  encodeError,
  encodePayload,
  encodeSendMessage,
  encodeSendTask,
  encodeTask,
  isJsonRpc,
  isTerminal,
  type Part,
  type State,
  type StreamPayload,
  type TaskView,
  type Wire,
} from './stub-wire.js';

/** One received request. `aborted` becomes true when the client disconnects before the answer is complete. */
export interface CapturedRequest {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  rawBody: string;
  /** The parsed body; undefined when it was empty or not JSON. */
  json: unknown;
  operation: Route['operation'];
  dialect: Route['dialect'];
  /** Time when the body was complete, in monotonic milliseconds. */
  at: number;
  aborted: boolean;
}

/** A task that the stub remembers, with the behaviours for the next poll or message. */
export interface StubTask extends TaskView {
  onGet?: Behaviour;
  onMessage?: Behaviour;
  readonly canceled: AbortController;
}

/** Handles one request: it answers through the call, or breaks the connection. */
export type Behaviour = (call: StubCall) => void | Promise<void>;

export interface Outcome {
  state: State;
  statusParts?: Part[];
  /** One artifact for each list of parts. */
  artifacts?: Part[][];
}

/** One request that a behaviour handles. The answer methods use the dialect of the request. */
export class StubCall {
  /** True when the agent itself destroyed the connection, which is not an abort by the client. */
  cut = false;

  constructor(
    readonly request: CapturedRequest,
    readonly response: ServerResponse,
    readonly route: Route,
    readonly task: StubTask,
    /** The card that the agent currently serves. */
    readonly card: Wire,
    /** Aborts when the client disconnects or the agent closes. */
    readonly gone: AbortSignal,
  ) {}

  get pathname(): string {
    return this.request.path.split('?')[0]!;
  }

  send(status: number, body: string | Buffer, headers: Record<string, string> = {}): void {
    this.response.writeHead(status, { 'content-length': Buffer.byteLength(body), ...headers }).end(body);
  }

  json(status: number, body: unknown): void {
    const type = this.route.dialect === 'v1-rest' ? 'application/a2a+json' : 'application/json';
    this.send(status, JSON.stringify(body), { 'content-type': type });
  }

  envelope(value: unknown): Wire {
    if (!isJsonRpc(this.route.dialect)) return value as Wire;
    return { jsonrpc: '2.0', id: this.route.rpcId ?? null, result: value };
  }

  result(value: unknown): void {
    this.json(200, this.envelope(value));
  }

  error(code: number, message: string, data?: unknown): void {
    const { status, body } = encodeError(this.route.dialect, this.route.rpcId, { code, message, data });
    this.json(status, body);
  }

  /** Returns the body of a correct answer for a completed task with this text. Hostile answers are built from it. */
  validAnswer(text = 'ok'): Wire {
    applyOutcome(this.task, { state: 'completed', artifacts: [[{ text }]] });
    return this.envelope(this.encodedTask());
  }

  /** Answers a Message without a task. */
  async message(parts: Part[]): Promise<void> {
    if (this.isStream) return this.stream([{ message: parts }]);
    this.result(encodeSendMessage(this.route.dialect, this.task, parts));
  }

  /** Sets the task to `outcome` and answers it: as a Task, or as a stream that ends with it. */
  async settle(outcome: Outcome): Promise<void> {
    if (!this.isStream) {
      applyOutcome(this.task, outcome);
      return this.result(this.encodedTask());
    }
    const artifacts = (outcome.artifacts ?? []).map((parts, index) => ({
      artifact: `artifact-${index + 1}`,
      parts,
      lastChunk: true,
    }));
    await this.stream([
      { task: 'working' },
      ...artifacts,
      { status: outcome.state, ...(outcome.statusParts && { parts: outcome.statusParts }) },
    ]);
  }

  openStream(): void {
    this.response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    this.response.flushHeaders();
  }

  /** Applies one event to the task and, on a streaming request, sends it. */
  async emit(payload: StreamPayload, eventId?: string): Promise<void> {
    applyPayload(this.task, payload);
    if (!this.isStream) return;
    const event = this.envelope(encodePayload(this.route.dialect, this.task, payload));
    await this.write(`${eventId === undefined ? '' : `id: ${eventId}\n`}data: ${JSON.stringify(event)}\n\n`);
  }

  /** Writes and waits until the socket has drained. Does nothing when the client is gone. */
  async write(chunk: string | Buffer): Promise<void> {
    if (this.gone.aborted || this.response.destroyed) return;
    if (!this.response.write(chunk)) await once(this.response, 'drain', { signal: this.gone }).catch(() => undefined);
  }

  /** Waits `ms` milliseconds, or until the client disconnects or the task is canceled. */
  async pause(ms: number): Promise<void> {
    const signal = AbortSignal.any([this.gone, this.task.canceled.signal]);
    await wait(ms, undefined, { signal }).catch(() => undefined);
  }

  /** Resolves when the client disconnects or the agent closes. */
  async untilGone(): Promise<void> {
    if (!this.gone.aborted) await once(this.gone, 'abort');
  }

  async untilGoneOrCanceled(): Promise<void> {
    const signal = AbortSignal.any([this.gone, this.task.canceled.signal]);
    if (!signal.aborted) await once(signal, 'abort');
  }

  /** Destroys the connection: with RST, or with a FIN that leaves the answer unfinished. */
  cutOff(how: 'reset' | 'fin'): void {
    this.cut = true;
    if (how === 'reset') this.response.socket?.resetAndDestroy();
    else this.response.socket?.end();
  }

  get isStream(): boolean {
    return this.route.operation === 'stream' || this.route.operation === 'subscribe';
  }

  /** Returns the task as this operation answers it: wrapped for a send, bare for all others. */
  encodedTask(): Wire {
    const wraps = this.route.operation === 'send';
    return wraps ? encodeSendTask(this.route.dialect, this.task) : encodeTask(this.route.dialect, this.task);
  }

  private async stream(payloads: StreamPayload[]): Promise<void> {
    this.openStream();
    for (const payload of payloads) await this.emit(payload);
    this.response.end();
  }
}

/** Sets a task to a state with exactly these artifacts. */
export function applyOutcome(task: TaskView, outcome: Outcome): void {
  task.state = outcome.state;
  task.statusParts = outcome.statusParts;
  task.artifacts = (outcome.artifacts ?? []).map((parts, index) => ({ artifactId: `artifact-${index + 1}`, parts }));
}

/** True when a stream that reached this state of the task ends. */
export function isSettled(task: TaskView): boolean {
  return isTerminal(task.state) || task.state === 'input-required';
}
