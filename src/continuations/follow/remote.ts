import type { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { RemoteCall } from '../../a2a-client/remote-call.types.js';
import type { StreamResponse, Task } from '../../protocol/a2a/model.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';
import type { TaskRun } from '../../tasks/executor.port.js';

/** Who works on a remote task, as it is remembered. */
export interface Callee {
  readonly id: string;
  readonly orgId: string;
  readonly slug: string;
  readonly url: string;
  /** For people, e.g. `agent weather`. */
  readonly title: string;
  readonly costPerTask?: number;
}

/** What a look saw. */
export interface Seen {
  readonly task: Task;
  /** For how long the remote wants not to be asked again. */
  readonly pauseMs?: number;
}

/** On whose behalf a remote is asked, and until when. */
export type Asker = Pick<TaskRun, 'ctx' | 'signal'>;

/** Where a task of ours goes on outside of this house: at a registered agent, or at an MCP server. */
export interface Remote {
  readonly callee: Callee;
  /** It may call for looks. */
  readonly pushes: boolean;
  /** The task as it is, in the words of the model. */
  look(asker: Asker, remoteTaskId: string): Promise<Seen>;
  /** Wants it to end. */
  stop(asker: Pick<Asker, 'ctx'>, remoteTaskId: string): Promise<unknown>;
  /** What happens to it from now on, for at most so many milliseconds; absent for one that only answers when it is asked. */
  subscribe?(asker: Asker, remoteTaskId: string, timeoutMs: number): AsyncIterable<StreamResponse>;
}

export function calleeOf({ row, card }: RegisteredAgent): Callee {
  const { id, orgId, slug, url } = row;
  return { id, orgId, slug, url, title: `agent ${slug}`, costPerTask: card?.costPerTask };
}

/** A registered agent, by A2A. */
export class AgentRemote implements Remote {
  readonly callee: Callee;
  readonly pushes: boolean;
  readonly subscribe?: Remote['subscribe'];

  /** @param lookMs how long one look may take. */
  constructor(
    private readonly client: A2AClientService,
    private readonly call: RemoteCall,
    private readonly lookMs: number,
  ) {
    const { card } = call.agent;
    this.callee = calleeOf(call.agent);
    this.pushes = card?.capabilities.pushNotifications === true;
    if (card?.capabilities.streaming === true)
      this.subscribe = ({ ctx, signal }, taskId, timeoutMs) =>
        client.subscribe(ctx, { ...call, signal, taskId, timeoutMs });
  }

  async look({ ctx }: Asker, taskId: string): Promise<Seen> {
    return { task: await this.client.getTask(ctx, { ...this.call, taskId, timeoutMs: this.lookMs }) };
  }

  stop({ ctx }: Pick<Asker, 'ctx'>, taskId: string): Promise<unknown> {
    return this.client.cancel(ctx, { ...this.call, taskId, timeoutMs: this.lookMs, signal: undefined });
  }
}
