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

/** A call of a tool, as its caller made it. */
export interface KeptCall {
  readonly target: UpstreamTool;
  readonly canonical: string;
  readonly args: JsonObject;
}

/** A call that its server has a task for. */
export interface BegunCall extends KeptCall {
  readonly first: ServerTask;
  /** What its caller can be asked for. */
  readonly capabilities: JsonObject;
}

/** Keeps the task that a call is answered with. */
export interface ToolKeeper extends TaskTaker {
  /** Of ours, once it goes on without the call. */
  readonly goesOn?: StoredTask;
}

/**
 * Tasks that MCP servers answer calls of their tools with: each is a task and a continuation of ours before its first look, and is followed
 * as those of remote agents are, by whichever process is there.
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
   * Keeps the task of a call while its caller waits, for so many milliseconds and no longer than a call of its server may take: gives the
   * result as the server gives it, or none with a task of ours that goes on, or waits for its caller. A caller that leaves meanwhile ends it.
   */
  keeperOf(ctx: CallContext, call: KeptCall, waitMs: number): ToolKeeper {
    const keeper: { -readonly [Name in keyof ToolKeeper]: ToolKeeper[Name] } = {
      admit: () => this.adoption.requireRoom(ctx),
      take: async (first) => {
        const task = await this.keep(ctx, call, first, waitMs);
        if (terminalStates.has(task.state)) return toolResultOf(task);
        keeper.goesOn = task;
        return {};
      },
    };
    return keeper;
  }

  /** The first run of a task of ours whose server made one of its own. @param more what the runs after this one have to know beside it. */
  async *begin(
    run: TaskRun,
    { first, capabilities, ...call }: BegunCall,
    view: ToolTaskView,
    more: JsonObject,
  ): AsyncGenerator<TaskUpdate, void> {
    const task = taskOf(call, first, capabilities);
    const remote = this.remoteOf(task, run.task.orgId, { view, first });
    const { followed, row } = this.updates.open(run, remote.callee, task.taskId);
    yield { memo: memoOf(task, more), rows: [row] };
    yield* this.follower.follow({ run, remote, followed, mirror: new RemoteMirror(run) }, this.updates.firstWaitMs);
  }

  /** Any later run. @param answers to what the server asked: told twice they count once (ext-tasks, task update requests). */
  async *goOn(
    run: TaskRun,
    remote: ToolTask,
    view: ToolTaskView,
    more: JsonObject,
    answers?: JsonObject,
  ): AsyncGenerator<TaskUpdate, void> {
    let task = remote;
    if (answers) {
      const { lookMs: timeoutMs } = this.updates;
      await this.tasks.answer(run.ctx, task, answers, { timeoutMs, signal: run.signal }).catch(laterIfPassing);
      task = { ...task, answered: [...(task.answered ?? []), ...Object.keys(answers)] };
      yield { memo: memoOf(task, more) };
    }
    const at = this.remoteOf(task, run.task.orgId, { view });
    yield* this.follower.resume(run, at, task.taskId, memoOf(task, more));
  }

  /** Tells the server that a task of ours ended without its own. */
  async abandon({ ctx, task: ours }: Pick<TaskRun, 'ctx' | 'task'>, task: ToolTask): Promise<void> {
    await this.tasks.cancel(ctx, task, { timeoutMs: this.updates.lookMs });
    await this.store.close(ours.id, task.taskId, 'completed');
  }

  private async keep(ctx: CallContext, call: KeptCall, first: ServerTask, waitMs: number): Promise<StoredTask> {
    const { org, principal, signal } = ctx;
    const { id: server, serverId, timeoutMs } = call.target.server.row;
    const task = taskOf(call, first, ctx.peer?.capabilities);
    const patience = timeoutSignal(Math.min(timeoutMs, waitMs), [signal]);
    const remote = this.remoteOf(task, org.id, { view: unchanged, first, waiting: { ctx, signal: patience.signal } });
    const id = newId<TaskId>();
    const { followed, row } = this.updates.open(
      { ctx, task: { id, orgId: org.id, principal } },
      remote.callee,
      task.taskId,
    );
    const left = new AbortController();
    const watch = (run: TaskRun) =>
      this.watch({ run, remote, followed, mirror: new RemoteMirror(run) }, timeoutMs, left.signal);
    const adoptee = {
      id,
      contextId: newId(),
      message: messageOf(call),
      memo: memoOf(task, { called: 0 }),
      rows: [row],
    };
    try {
      const adopted = await this.adoption.adopt(ctx, forServer(server as AgentId, serverId, org), adoptee, watch);
      await raceSignal(patience.signal, adopted.ended, () => new RialtoError('remote_timeout')).catch(() => undefined);
      if (!signal?.aborted) return adopted.task;
      left.abort();
      await adopted.ended;
    } catch (error) {
      void remote.stop({ ctx }).catch(() => undefined);
      throw error;
    } finally {
      patience.end();
    }
    throw new RialtoError('canceled', { data: { taskId: id } });
  }

  /** The first run of a kept task. @param left aborts when its caller is gone before it. */
  private async *watch(following: Following, timeoutMs: number, left: AbortSignal): AsyncGenerator<TaskUpdate, void> {
    const { run, remote, followed, mirror } = following;
    const signal = AbortSignal.any([run.signal, left]);
    const waitMs = Math.max(timeoutMs, this.updates.firstWaitMs);
    yield* this.follower.follow({ ...following, run: { ...run, signal } }, waitMs);
    if (!left.aborted || run.signal.aborted || mirror.isSettled) return;
    void remote.stop(run, followed.remoteTaskId).catch(() => undefined);
    yield this.updates.canceled(followed, { polls: 0 });
  }

  private remoteOf(task: ToolTask, orgId: string, how: Omit<Manner, 'callee' | 'lookMs'>): ToolRemote {
    const { server: id, serverId: slug, url } = task;
    const callee = { id, orgId, slug, url, title: `MCP server ${slug}` };
    return new ToolRemote(this.tasks, task, { ...how, callee, lookMs: this.updates.lookMs });
  }
}

/** Of a task of ours: the one at the server. */
export function toolTaskOf({ memo }: Pick<StoredTask, 'memo'>): ToolTask | undefined {
  return isJsonObject(memo) ? (memo.remote as unknown as ToolTask | undefined) : undefined;
}

function memoOf(task: ToolTask, more: JsonObject): Json {
  return { ...more, remote: storableJson(task) as unknown as JsonObject };
}

function taskOf(
  { target, canonical, args }: KeptCall,
  { taskId }: ServerTask,
  capabilities: JsonObject = {},
): ToolTask {
  const { id: server, serverId, url } = target.server.row;
  const place = { server, serverId, tool: target.tool.name, url: url?.replace(/[?#].*/s, '') ?? '' };
  return { ...place, taskId, canonical, args, capabilities };
}

/** Answers that did not arrive are brought again, by whoever takes up the task next. */
function laterIfPassing(thrown: unknown): never {
  throw isPassing(thrown) ? new RialtoError('unavailable', { cause: thrown }) : thrown;
}

function messageOf({ target, args }: KeptCall): Message {
  return {
    messageId: newId(),
    role: 'ROLE_USER',
    parts: [{ data: storableJson(args) }],
    metadata: { skillId: target.tool.name },
  };
}
