import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStream, type Frame } from '../support/clients/a2a.js';
import type { Random } from '../support/fuzz/random.js';
import type { Slot } from './processes/fleet.js';
import type { History, StreamSeen } from './history.js';
import { plainState } from './remotes.js';

type Wire = Record<string, any>;

export interface Answer {
  readonly status: number;
  readonly body: Wire;
  readonly ms: number;
  /** True when the response allows to repeat the same request. */
  readonly mayRetry: boolean;
}

export interface SendOptions {
  readonly agent: string;
  readonly payload: string;
  readonly key?: string;
  readonly wait?: boolean;
  /** The task to continue, which has asked a question. */
  readonly taskId?: string;
  /** The path of a webhook receiver. */
  readonly push?: string;
  readonly echoes?: boolean;
}

const timeoutMs = 90_000;
const tryTimeoutMs = 30_000;

/** A caller of one org. It sends to any available door, retries failed requests, and records the answers. */
export class Caller {
  /** Stops retries. */
  isOver = false;

  constructor(
    readonly org: string,
    private readonly token: string,
    private readonly doors: () => readonly Slot[],
    private readonly history: History,
    private readonly random: Random,
  ) {}

  /** Sends one request. Returns undefined when the connection broke. */
  async call(slot: Slot, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const begun = performance.now();
    try {
      const response = await fetch(`${slot.url}${path}`, {
        method,
        signal: AbortSignal.timeout(tryTimeoutMs),
        headers: {
          authorization: `Bearer ${this.token}`,
          accept: 'application/json, text/event-stream',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await response.text();
      if (text.includes('canary')) this.history.texts.push({ org: this.org, where: `${method} ${path}`, text });
      const mayRetry = response.status === 503 && response.headers.has('retry-after');
      return { status: response.status, body: parsed(text), ms: performance.now() - begun, mayRetry } satisfies Answer;
    } catch {
      return undefined;
    }
  }

  rpc(slot: Slot, agent: string, method: string, params: unknown, headers?: Record<string, string>) {
    return this.call(slot, 'POST', `/a2a/agents/${agent}`, { jsonrpc: '2.0', id: 1, method, params }, headers);
  }

  /** Waits for an available door and returns it. */
  async door(): Promise<Slot> {
    for (;;) {
      const open = this.doors();
      if (open.length > 0) return this.random.pick(open);
      await sleep(20);
    }
  }

  /**
   * Retries until the request is answered; without a key it tries only once. Returns the id of the task, if the answer
   * has one.
   */
  async send(options: SendOptions): Promise<string | undefined> {
    for (const until = Date.now() + timeoutMs; Date.now() < until; await sleep(50 + this.random.whole(100))) {
      const { taskId, mayRepeat } = await this.tryToSend(await this.door(), options);
      if (!mayRepeat) return taskId;
      if (options.key === undefined || this.isOver) return undefined;
    }
    return undefined;
  }

  /** Makes one attempt at one door. */
  async tryToSend(slot: Slot, options: SendOptions): Promise<{ taskId?: string; mayRepeat: boolean }> {
    const { agent, payload, key, echoes } = options;
    const at = Date.now();
    const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
    const answer = await this.rpc(slot, agent, 'SendMessage', paramsOf(options), headers);
    const { status, body = {}, ms = Date.now() - at, mayRetry } = answer ?? {};
    const task = body.result?.task as Wire | undefined;
    const errorCode = body.error ? String(body.error.code) : undefined;
    this.history.sends.push({
      org: this.org,
      agent,
      key,
      payload,
      at,
      ms,
      status,
      mayRetry,
      taskId: task?.id,
      errorCode,
      echoes,
    });
    if (task) this.recordSighting(task.id, task.status.state);
    return { taskId: task?.id, mayRepeat: answer === undefined || answer.status >= 500 || isTemporary(body.error) };
  }

  async check(agent: string, taskId: string): Promise<Wire | undefined> {
    const answer = await this.rpc(await this.door(), agent, 'GetTask', { id: taskId });
    const task = answer?.body.result as Wire | undefined;
    if (task) this.recordSighting(taskId, task.status.state);
    return task;
  }

  async cancel(slot: Slot, agent: string, taskId: string): Promise<void> {
    const answer = await this.rpc(slot, agent, 'CancelTask', { id: taskId });
    if (!answer || answer.status >= 500) return;
    const task = answer.body.result as Wire | undefined;
    const state = task && plainState(task.status.state);
    this.history.ends.push({ taskId, want: 'canceled', accepted: task !== undefined, state });
    if (task) this.recordSighting(taskId, task.status.state);
  }

  /**
   * Sends and reads the events until the end, with as many connections as needed.
   * @param leaveAfter number of frames after which the first connection is closed.
   */
  async stream(options: SendOptions, leaveAfter = Infinity): Promise<string | undefined> {
    let [taskId, last, most]: [string | undefined, number, number] = [undefined, 0, leaveAfter];
    for (const until = Date.now() + timeoutMs; Date.now() < until && !this.isOver; await sleep(50)) {
      const known: string | undefined = taskId;
      const [method, params, headers]: [string, unknown, Record<string, string>] =
        known === undefined
          ? ['SendStreamingMessage', paramsOf(options), options.key ? { 'idempotency-key': options.key } : {}]
          : ['SubscribeToTask', { id: known }, { 'Last-Event-ID': String(last) }];
      const seen = await this.read(await this.door(), options.agent, { method, params, headers }, known, last, most);
      taskId ??= seen.taskId;
      last = Math.max(last, seen.last);
      most = Infinity;
      if (seen.isOver) return taskId;
      if (known === undefined && taskId === undefined && options.key === undefined) return undefined;
    }
    return taskId;
  }

  private async read(
    slot: Slot,
    agent: string,
    { method, params, headers }: { method: string; params: unknown; headers: Record<string, string> },
    known: string | undefined,
    after: number,
    most: number,
  ): Promise<{ taskId?: string; last: number; isOver: boolean }> {
    const frames: StreamSeen['frames'][number][] = [];
    let [taskId, isOver] = [known, false];
    const body = { jsonrpc: '2.0', id: 1, method, params };
    const { token } = this;
    try {
      const stream = await openStream(`${slot.url}/a2a/agents/${agent}`, { token, headers, body });
      for (let frame = await stream.next(); frame && frames.length < most; frame = await stream.next()) {
        const { result } = frame.data as { result?: Wire };
        if (!result || frame.id === undefined) break;
        taskId ??= (result.task?.id ?? result.statusUpdate?.taskId) as string;
        frames.push({ seq: frame.id, at: Date.now(), isSnapshot: 'task' in result });
        isOver = this.hasEnded(taskId, frame);
      }
      stream.close();
    } catch {
      // the connection broke; the next one continues
    }
    if (taskId !== undefined) this.history.streams.push({ taskId, frames, ...(known !== undefined && { after }) });
    return { taskId, last: frames.at(-1)?.seq ?? 0, isOver };
  }

  private hasEnded(taskId: string, { data }: Frame): boolean {
    const { task, statusUpdate } = (data as { result: Wire }).result;
    const state = (statusUpdate ?? task)?.status?.state as string | undefined;
    if (state === undefined) return false;
    this.recordSighting(taskId, state);
    return !/SUBMITTED|WORKING/.test(state);
  }

  private recordSighting(taskId: string, state: string): void {
    // Each call counts as a separate observer, because answers of different doors may arrive in another order.
    this.history.sightings.push({
      by: `${this.org} ${randomUUID()}`,
      taskId,
      state: plainState(state),
      at: Date.now(),
    });
  }
}

function paramsOf({ payload, wait, taskId, push }: SendOptions): Wire {
  return {
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: payload }], ...(taskId && { taskId }) },
    configuration: {
      returnImmediately: wait !== true,
      ...(push !== undefined && { taskPushNotificationConfig: { url: push, token: 'canary-token-of-a-receiver' } }),
    },
  };
}

/** Tells whether the error is temporary, so that the same request may succeed later. */
function isTemporary(error: Wire | undefined): boolean {
  return error !== undefined && /unavailable|temporarily/i.test(JSON.stringify(error));
}

function parsed(text: string): Wire {
  try {
    return JSON.parse(text) as Wire;
  } catch {
    return {};
  }
}
