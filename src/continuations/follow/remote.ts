import type { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { RemoteCall } from '../../a2a-client/remote-call.types.js';
import type { StreamResponse, Task } from '../../protocol/a2a/model.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';
import type { TaskRun } from '../../tasks/executor.port.js';

/** The agent or MCP server that works on a remote task, as stored with the continuation. */
export interface Callee {
  readonly id: string;
  readonly orgId: string;
  readonly slug: string;
  readonly url: string;
  /** Name for people, e.g. `agent weather`. */
  readonly title: string;
  readonly costPerTask?: number;
}

/** Result of a poll. */
export interface Polled {
  readonly task: Task;
  /** Pause that the remote asks for before the next poll, in milliseconds. */
  readonly pauseMs?: number;
}

/** Context of the caller that a remote is asked for, and the signal that ends the request. */
export type Asker = Pick<TaskRun, 'ctx' | 'signal'>;

/** The place where a task goes on outside of the gateway: a registered agent or an MCP server. */
export interface Remote {
  readonly callee: Callee;
  /** True when it may send pushes that cause polls. */
  readonly pushes: boolean;
  /** Polls the task and returns it in the model of the gateway. */
  poll(asker: Asker, remoteTaskId: string): Promise<Polled>;
  /** Cancels the task. */
  cancelTask(asker: Pick<Asker, 'ctx'>, remoteTaskId: string): Promise<unknown>;
  /**
   * Streams the events of the task from now on, for at most `timeoutMs`; absent for a remote that can only be polled.
   */
  subscribe?(asker: Asker, remoteTaskId: string, timeoutMs: number): AsyncIterable<StreamResponse>;
}

export function calleeOf({ row, card }: RegisteredAgent): Callee {
  const { id, orgId, slug, url } = row;
  return { id, orgId, slug, url, title: `agent ${slug}`, costPerTask: card?.costPerTask };
}

/** A registered agent that is called with A2A. */
export class AgentRemote implements Remote {
  readonly callee: Callee;
  readonly pushes: boolean;
  readonly subscribe?: Remote['subscribe'];

  /**
   * Makes the remote for the agent of a call.
   *
   * @param pollTimeoutMs timeout of one poll, in milliseconds.
   */
  constructor(
    private readonly client: A2AClientService,
    private readonly call: RemoteCall,
    private readonly pollTimeoutMs: number,
  ) {
    const { card } = call.agent;
    this.callee = calleeOf(call.agent);
    this.pushes = card?.capabilities.pushNotifications === true;
    if (card?.capabilities.streaming === true)
      this.subscribe = ({ ctx, signal }, taskId, timeoutMs) =>
        client.subscribe(ctx, { ...call, signal, taskId, timeoutMs });
  }

  async poll({ ctx }: Asker, taskId: string): Promise<Polled> {
    return { task: await this.client.getTask(ctx, { ...this.call, taskId, timeoutMs: this.pollTimeoutMs }) };
  }

  cancelTask({ ctx }: Pick<Asker, 'ctx'>, taskId: string): Promise<unknown> {
    return this.client.cancel(ctx, { ...this.call, taskId, timeoutMs: this.pollTimeoutMs, signal: undefined });
  }
}
