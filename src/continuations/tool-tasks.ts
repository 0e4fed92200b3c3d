import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { newId, type AgentId, type TaskId } from '../kernel/ids.js';
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.js';
import { timeoutSignal, raceSignal } from '../kernel/abort.js';
import type { Message } from '../protocol/a2a/model.js';
import { terminalStates } from '../protocol/a2a/states.js';
import { storableJson } from '../protocol/jsonrpc.js';
import type { ServerTask } from '../protocol/mcp/server-task.js';
import { forServer } from '../registry/task-agents.js';
import type { TaskRun, TaskUpdate } from '../tasks/executor.port.js';
import { TaskAdoption } from '../tasks/task-adoption.js';
import type { StoredTask } from '../tasks/task.types.js';
import type { UpstreamTool } from '../upstreams/registered-server.types.js';
import { UpstreamTasks } from '../upstreams/upstream-tasks.js';
import type { TaskTaker } from '../upstreams/upstream-tasks.types.js';
import { isPassing } from './follow/continuation-plan.js';
import { ContinuationStore } from './storage/continuation.store.js';
import { ContinuationUpdates } from './follow/continuation-updates.js';
import { RemoteFollower, type Following } from './follow/remote-follower.js';
import { RemoteMirror } from './follow/remote-mirror.js';
import { ToolRemote, type Manner } from './follow/tool-remote.js';
import { toolResultOf, unchanged, type ToolTask, type ToolTaskView } from './tool-task.types.js';

/** Tool call as its caller made it. */
export interface KeptCall {
  readonly target: UpstreamTool;
  readonly canonical: string;
  readonly args: JsonObject;
}

/** Tool call that its server answered with a task. */
export interface BegunCall extends KeptCall {
  readonly first: ServerTask;
  /** Client capabilities of the caller: what the server may ask it for. */
  readonly capabilities: JsonObject;
}

/** Stores the task that a server answered a call with. */
export interface ToolKeeper extends TaskTaker {
  /** The task of the gateway, once it goes on after the call. */
  readonly goesOn?: StoredTask;
}

/**
 * Tasks that MCP servers create for tool calls. Each is stored as a task and a continuation before its first poll. It
 * is followed like a task of a remote agent, by any process.
 */
@Injectable()
export class ToolTasks {
  constructor(
    private readonly adoption: TaskAdoption,
    private readonly follower: RemoteFollower,
    private readonly updates: ContinuationUpdates,
    private readonly store: ContinuationStore,
    private readonly tasks: UpstreamTasks,
  ) {}

  /**
   * Makes the keeper for a call. While the caller waits, for at most `waitMs` and the timeout of the server, the
   * keeper follows the task. It returns the unchanged result of the server, or none and in `goesOn` the task that
   * goes on or waits for its caller. When the caller leaves during the wait, the task is canceled.
   */
  keeperOf(ctx: CallContext, call: KeptCall, waitMs: number): ToolKeeper {
    const keeper: { -readonly [Name in keyof ToolKeeper]: ToolKeeper[Name] } = {
      admit: () => this.adoption.requireRoom(ctx),
      take: async (first) => {
        const task = await this.keepCall(ctx, call, first, waitMs);
        if (terminalStates.has(task.state)) return toolResultOf(task);
        keeper.goesOn = task;
        return {};
      },
    };
    return keeper;
  }

  /**
   * First run of a task here when its server created a task of its own.
   *
   * @param more facts that the next runs need besides the remote task.
   */
  async *begin(
    run: TaskRun,
    { first, capabilities, ...call }: BegunCall,
    view: ToolTaskView,
    more: JsonObject,
  ): AsyncGenerator<TaskUpdate, void> {
    const task = serverTaskOf(call, first, capabilities);
    const remote = this.remoteOf(task, run.task.orgId, { view, first });
    const { followed, row } = this.updates.openContinuation(run, remote.callee, task.taskId);
    yield { memo: memoOf(task, more), rows: [row] };
    yield* this.follower.follow({ run, remote, followed, mirror: new RemoteMirror(run) }, this.updates.firstWaitMs);
  }

  /**
   * Every later run.
   *
   * @param answers answers to questions of the server; sent twice they count once (ext-tasks, task update requests).
   */
  async *goOn(
    run: TaskRun,
    remote: ToolTask,
    view: ToolTaskView,
    more: JsonObject,
    answers?: JsonObject,
  ): AsyncGenerator<TaskUpdate, void> {
    let task = remote;
    if (answers) {
      const { pollTimeoutMs: timeoutMs } = this.updates;
      await this.tasks.answer(run.ctx, task, answers, { timeoutMs, signal: run.signal }).catch(retryLaterIfTransient);
      task = { ...task, answered: [...(task.answered ?? []), ...Object.keys(answers)] };
      yield { memo: memoOf(task, more) };
    }
    const at = this.remoteOf(task, run.task.orgId, { view });
    yield* this.follower.resume(run, at, task.taskId, memoOf(task, more));
  }

  /** Cancels the task at the server after the task here ended. */
  async abandon({ ctx, task: local }: Pick<TaskRun, 'ctx' | 'task'>, task: ToolTask): Promise<void> {
    await this.tasks.cancel(ctx, task, { timeoutMs: this.updates.pollTimeoutMs });
    await this.store.close(local.id, task.taskId, 'completed');
  }

  private async keepCall(ctx: CallContext, call: KeptCall, first: ServerTask, waitMs: number): Promise<StoredTask> {
    const { org, principal, signal } = ctx;
    const { id: server, serverId, timeoutMs } = call.target.server.row;
    const task = serverTaskOf(call, first, ctx.peer?.capabilities);
    const waitTimeout = timeoutSignal(Math.min(timeoutMs, waitMs), [signal]);
    const remote = this.remoteOf(task, org.id, {
      view: unchanged,
      first,
      waiting: { ctx, signal: waitTimeout.signal },
    });
    const id = newId<TaskId>();
    const { followed, row } = this.updates.openContinuation(
      { ctx, task: { id, orgId: org.id, principal } },
      remote.callee,
      task.taskId,
    );
    const left = new AbortController();
    const watch = (run: TaskRun) =>
      this.followWithCaller({ run, remote, followed, mirror: new RemoteMirror(run) }, timeoutMs, left.signal);
    const adoptee = {
      id,
      contextId: newId(),
      message: callMessage(call),
      memo: memoOf(task, { called: 0 }),
      rows: [row],
    };
    try {
      const adopted = await this.adoption.adopt(ctx, forServer(server as AgentId, serverId, org), adoptee, watch);
      await raceSignal(waitTimeout.signal, adopted.ended, () => new RialtoError('remote_timeout')).catch(
        () => undefined,
      );
      if (!signal?.aborted) return adopted.task;
      left.abort();
      await adopted.ended;
    } catch (error) {
      void remote.cancelTask({ ctx }).catch(() => undefined);
      throw error;
    } finally {
      waitTimeout.end();
    }
    throw new RialtoError('canceled', { data: { taskId: id } });
  }

  /**
   * First run of a stored task.
   *
   * @param left aborts when the caller leaves before the end.
   */
  private async *followWithCaller(
    following: Following,
    timeoutMs: number,
    left: AbortSignal,
  ): AsyncGenerator<TaskUpdate, void> {
    const { run, remote, followed, mirror } = following;
    const signal = AbortSignal.any([run.signal, left]);
    const waitMs = Math.max(timeoutMs, this.updates.firstWaitMs);
    yield* this.follower.follow({ ...following, run: { ...run, signal } }, waitMs);
    if (!left.aborted || run.signal.aborted || mirror.isSettled) return;
    void remote.cancelTask(run, followed.remoteTaskId).catch(() => undefined);
    yield this.updates.canceled(followed, { polls: 0 });
  }

  private remoteOf(task: ToolTask, orgId: string, how: Omit<Manner, 'callee' | 'pollTimeoutMs'>): ToolRemote {
    const { server: id, serverId: slug, url } = task;
    const callee = { id, orgId, slug, url, title: `MCP server ${slug}` };
    return new ToolRemote(this.tasks, task, { ...how, callee, pollTimeoutMs: this.updates.pollTimeoutMs });
  }
}

/** Task at the server that belongs to a stored task. */
export function toolTaskOf({ memo }: Pick<StoredTask, 'memo'>): ToolTask | undefined {
  return isJsonObject(memo) ? (memo.remote as unknown as ToolTask | undefined) : undefined;
}

function memoOf(task: ToolTask, more: JsonObject): Json {
  return { ...more, remote: storableJson(task) as unknown as JsonObject };
}

function serverTaskOf(
  { target, canonical, args }: KeptCall,
  { taskId }: ServerTask,
  capabilities: JsonObject = {},
): ToolTask {
  const { id: server, serverId, url } = target.server.row;
  const place = { server, serverId, tool: target.tool.name, url: url?.replace(/[?#].*/s, '') ?? '' };
  return { ...place, taskId, canonical, args, capabilities };
}

/** Answers that did not arrive are sent again by the next run. */
function retryLaterIfTransient(thrown: unknown): never {
  throw isPassing(thrown) ? new RialtoError('unavailable', { cause: thrown }) : thrown;
}

function callMessage({ target, args }: KeptCall): Message {
  return {
    messageId: newId(),
    role: 'ROLE_USER',
    parts: [{ data: storableJson(args) }],
    metadata: { skillId: target.tool.name },
  };
}
