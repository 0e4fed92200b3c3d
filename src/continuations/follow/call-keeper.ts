import { Injectable } from '@nestjs/common';
import type { SkillCall } from '../../a2a-client/remote-call.types.js';
import {
  waitUntilSettled,
  type Admission,
  type RemoteTask,
  type RemoteTaskKeeper,
  type TaskReply,
  type WaitLimits,
} from '../../a2a-client/remote-task-keeper.port.js';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type TaskId } from '../../kernel/ids.js';
import { retryAfterMs } from '../../kernel/backoff.js';
import type { Act } from '../../kernel/verb-bus.js';
import type { BridgeReply } from '../../protocol/a2a/remote/bridge-call.js';
import type { Message } from '../../protocol/a2a/model.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import { storableJson } from '../../protocol/jsonrpc.js';
import { artifactsOf, partsOf } from '../../protocol/a2a/remote/remote-parts.js';
import { stateOf } from '../../protocol/a2a/states.js';
import { forAdopted } from '../../registry/task-agents.js';
import type { TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import { TaskAdoption, type Adopted } from '../../tasks/task-adoption.js';
import { isPassing } from './continuation-plan.js';
import type { Followed } from '../storage/continuation.store.js';
import { ContinuationUpdates } from './continuation-updates.js';
import { PushTokens } from '../push/push-tokens.js';
import { RemoteFollower } from './remote-follower.js';
import { firstOutwardId, type RemoteMemo } from './outward-message.js';
import { calleeOf } from './remote.js';
import { RemoteMirror } from './remote-mirror.js';
import { endingWait } from '../threads/thread-answer.store.js';
import { CallReceivers } from './call-receivers.js';

const stillWorking = 'The agent still works on it. Ask again with the tool task_status and this taskId.';

/** How the wait of a caller ended; `goesOn` when the remote task has not ended. */
type Waited =
  | { readonly kind: 'settled'; readonly reply: BridgeReply }
  | { readonly kind: 'failed' | 'goesOn'; readonly error: RialtoError };

/**
 * Stores and follows the tasks of bridged calls. Writes a task and a continuation for each call before the first poll.
 * While the caller waits, this process polls the remote task. It cancels the remote task when the caller leaves. When
 * the wait of the caller times out, the reply says how to ask again.
 */
@Injectable()
export class CallKeeper implements RemoteTaskKeeper {
  constructor(
    private readonly adoption: TaskAdoption,
    private readonly follower: RemoteFollower,
    private readonly updates: ContinuationUpdates,
    private readonly receivers: CallReceivers,
    private readonly pushes: PushTokens,
  ) {}

  async admit(ctx: CallContext, call: SkillCall): Promise<Admission> {
    const { agent } = call;
    await this.receivers.requirePostable(ctx, forAdopted(agent, ctx.org), call);
    this.adoption.requireRoom(ctx);
    const taskId = newId<TaskId>();
    return { taskId, pushUrl: this.pushes.urlFor(agent, { taskId, orgId: ctx.org.id }) };
  }

  async keepTask(
    act: Act,
    call: SkillCall & Admission,
    first: TaskReply,
    remote: RemoteTask,
    limits: WaitLimits,
  ): Promise<BridgeReply> {
    const { ctx } = act;
    const { taskId: id } = call;
    const { followed, row } = this.updates.openContinuation(
      { ctx, task: { id, orgId: ctx.org.id, principal: ctx.principal } },
      calleeOf(call.agent),
      first.taskId,
      act.id,
    );
    const memo: RemoteMemo = { taskId: first.taskId, contextId: first.contextId, messageId: firstOutwardId(id) };
    const adoptee = {
      id,
      contextId: first.contextId ?? newId(),
      message: callMessage(call, memo.messageId),
      memo: { ...memo },
      rows: [row, ...this.receivers.rows(ctx, id, call)],
    };
    const wait = new Wait(first, remote, limits);
    const adopted = await this.adoption
      .adopt(ctx, forAdopted(call.agent, ctx.org), adoptee, (run) => this.followCall(run, call, followed, wait, act.id))
      .catch((error: unknown) => {
        wait.cancelRemote();
        throw error;
      });
    const waited = await Promise.race([wait.over, adopted.ended.then(() => undefined)]);
    if (waited?.kind !== 'goesOn') await adopted.ended;
    return this.replyToCaller(act, adopted.task, waited);
  }

  /** First run of the task: polls on behalf of the waiting caller, then follows the remote task without it. */
  private async *followCall(
    run: TaskRun,
    call: SkillCall,
    followed: Followed,
    wait: Wait,
    actId: string,
  ): AsyncGenerator<TaskUpdate, void> {
    const startedAt = systemClock.elapsed();
    const waited = await wait.untilOver(run.signal);
    if (run.signal.aborted) return;
    const { polls } = wait;
    const thread = call.thread ? [endingWait(run.task.id, waited.kind === 'goesOn' ? 'waiting' : 'answered')] : [];
    if (waited.kind === 'goesOn') {
      const waitMs = this.updates.firstWaitMs - (systemClock.elapsed() - startedAt);
      const withRunSignal = { ...call, signal: run.signal };
      const handedOver = { ...followed, actId };
      yield { memo: run.task.memo!, rows: [this.updates.stillActive(handedOver), ...thread] };
      const remote = this.follower.remoteFor(withRunSignal);
      const following = { run, remote, followed: handedOver, mirror: new RemoteMirror(run) };
      const pauseMs = retryAfterMs(waited.error.data?.retryAfter, systemClock.now());
      return yield* this.follower.follow(following, waitMs, { polls, retryAfterMs: pauseMs });
    }
    if (waited.kind !== 'settled') {
      yield withRows(this.failureUpdate(call, followed, waited.error, polls), thread);
      return;
    }
    const reply = storableJson(waited.reply);
    let isEmpty = true;
    for (const artifact of reply.kind === 'task' ? artifactsOf(reply) : []) {
      isEmpty = false;
      yield { artifact, lastChunk: true };
    }
    yield withRows(this.updates.relayed(endUpdate(reply), calleeOf(call.agent), followed, { polls, isEmpty }), thread);
  }

  private failureUpdate(call: SkillCall, followed: Followed, error: RialtoError, polls: number): TaskUpdate {
    const { code, data, message } = error;
    if (code === 'canceled') return this.updates.canceled(followed, { polls });
    if (code !== 'remote_task_failed') return this.updates.failed(calleeOf(call.agent), followed, { polls }, error);
    const status = { state: stateOf(String(data?.state)), message: { parts: [{ text: message }] } };
    return this.updates.relayed({ status }, calleeOf(call.agent), followed, { polls, isEmpty: false });
  }

  private replyToCaller(act: Act, task: Adopted['task'], waited: Waited | undefined): BridgeReply {
    if (waited?.kind === 'settled') return waited.reply;
    if (waited?.kind === 'failed') throw waited.error;
    if (task.state === 'TASK_STATE_CANCELED') throw new RialtoError('canceled', { data: { taskId: task.id } });
    act.handedOver = true;
    const { id: taskId, contextId, state } = task;
    return { kind: 'task', state, taskId, contextId, task: {}, artifacts: [], statusText: stillWorking };
  }
}

/** Wait of one caller for its remote task. */
class Wait {
  /** Polls that the wait took. */
  polls = 0;
  readonly over: Promise<Waited>;
  private settle!: (waited: Waited) => void;

  constructor(
    private readonly first: TaskReply,
    private readonly remote: RemoteTask,
    private readonly limits: WaitLimits,
  ) {
    this.over = new Promise((resolve) => (this.settle = resolve));
  }

  /**
   * Waits until the remote task settles or the wait of the caller ends.
   *
   * @param stop ends the wait without the caller: the task was canceled, or another process works on it.
   */
  async untilOver(stop: AbortSignal): Promise<Waited> {
    const { remote, limits } = this;
    const counted: RemoteTask = {
      ...remote,
      get: (...args) => {
        this.polls++;
        return remote.get(...args);
      },
    };
    const waited = await waitUntilSettled(this.first, counted, { ...limits, signals: [...limits.signals, stop] }).then(
      (reply): Waited => ({ kind: 'settled', reply }),
      (thrown: unknown): Waited => {
        const error = RialtoError.from(thrown);
        return { kind: isPassing(error) ? 'goesOn' : 'failed', error };
      },
    );
    if (!stop.aborted) {
      if (waited.kind === 'failed' && waited.error.code === 'canceled') this.cancelRemote();
      this.settle(waited);
    }
    return waited;
  }

  /** Cancels the remote task without waiting for the answer, because the caller has left. */
  cancelRemote(): void {
    this.remote.cancel(this.first.taskId).catch(() => undefined);
  }
}

/** Adds rows to the commit of an update. */
function withRows(update: TaskUpdate, more: readonly RowChange[]): TaskUpdate {
  if ('artifact' in update || 'reply' in update) return update;
  return { ...update, rows: [...(update.rows ?? []), ...more] };
}

function callMessage({ args, skillId }: SkillCall, messageId: string): Message {
  return { messageId, role: 'ROLE_USER', parts: [{ data: storableJson(args) }], metadata: { skillId } };
}

function endUpdate(reply: BridgeReply): Parameters<ContinuationUpdates['relayed']>[0] {
  if (reply.kind === 'message') return { reply: { parts: partsOf(reply.message.parts) } };
  const { state, statusMessage } = reply;
  return { status: { state, ...(statusMessage && { message: { parts: partsOf(statusMessage.parts) } }) } };
}
