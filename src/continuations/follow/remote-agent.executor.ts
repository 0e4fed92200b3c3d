import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { MessageCall, RemoteCall } from '../../a2a-client/remote-call.types.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type ActId } from '../../kernel/ids.js';
import { isJsonObject, storableText, type Json, type JsonObject } from '../../kernel/json.js';
import { keptJson } from '../../platform/secrets/kept-json.js';
import type { StreamResponse } from '../../protocol/a2a/model.js';
import { canonicalName } from '../../protocol/mcp/tool-names.js';
import { dispatchedSkill } from '../../registry/own-routing.js';
import type { ExecutorConfig } from '../../registry/published.types.js';
import { RegistryService } from '../../registry/registry.service.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import { ContinuationStore, type Followed } from '../storage/continuation.store.js';
import { isSettled, stateAfter } from '../../tasks/task-stream.service.js';
import { ContinuationUpdates } from './continuation-updates.js';
import { PushTokens } from '../push/push-tokens.js';
import { RemoteFollower } from './remote-follower.js';
import { handleOf, memoOf, outward, outwardId, type RemoteMemo } from './remote-message.js';
import { RemoteMirror } from './remote-mirror.js';

type RemoteConfig = Extract<ExecutorConfig, { kind: 'remote' }>;

const callTimeoutMs = 30_000;
/** Pause before the gateway asks an agent with a broken connection what became of a message. */
const beforeRepeatMs = 500;

/** Message to send; `act` makes the id of the act of each attempt. */
interface Outgoing extends Pick<MessageCall, 'params' | 'pushUrl'> {
  readonly key: string;
  readonly act: () => ActId;
}

/**
 * Runs the tasks of a published agent at a registered agent and passes on its events. A remote task that does not end
 * at once is stored as a continuation before anything else. After that, a lost process or stream leads to a poll and
 * never to a second send (reliability 4.4, I5).
 */
@Injectable()
export class RemoteAgentExecutor implements TaskExecutor {
  readonly kind = 'remote';
  readonly pure = false;

  constructor(
    private readonly client: A2AClientService,
    private readonly registry: RegistryService,
    private readonly follower: RemoteFollower,
    private readonly updates: ContinuationUpdates,
    private readonly store: ContinuationStore,
    private readonly pushes: PushTokens,
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    const call = await this.callOf(run);
    const memo = memoOf(run);
    if (memo?.messageId === outwardId(run))
      return yield* this.follower.resume(run, this.follower.agentOf(call), memo.taskId, { ...memo });
    yield* this.send(run, call, memo);
  }

  /** True when the remote has the message: any process can then poll the remote task. */
  leavesWork(run: Pick<TaskRun, 'task' | 'message'>): boolean {
    return memoOf(run)?.messageId === outwardId(run);
  }

  /**
   * Cancels the remote task after a cancel here. The task here is canceled also when the remote refuses. After an
   * error the sweeper cancels again.
   */
  async abandon(run: Omit<TaskRun, 'signal' | 'earlier'>): Promise<void> {
    const memo = memoOf(run);
    if (!memo) return;
    await this.client.cancel(run.ctx, { ...(await this.callOf(run)), taskId: memo.taskId });
    await this.store.close(run.task.id, memo.taskId, 'completed');
  }

  private async *send(run: TaskRun, call: RemoteCall, memo: RemoteMemo | undefined): AsyncGenerator<TaskUpdate, void> {
    const mirror = new RemoteMirror(run);
    const remote = this.follower.agentOf(call);
    const references = await this.store.remoteIdsOf(run.agent.id, run.message.referenceTaskIds ?? []);
    const message = outward(run, call.skillId, memo, references);
    const params = { message, configuration: { returnImmediately: true } };
    const pushUrl = this.pushes.urlFor(call.agent, { taskId: run.task.id, orgId: run.task.orgId });
    const { messageId } = params.message;
    let id = newId<ActId>();
    const outgoing = { params, pushUrl, key: messageId, act: () => (id = newId<ActId>()) };
    let followed: Followed | undefined;
    const remember = (handle: { taskId: string; contextId?: string }, event?: StreamResponse): TaskUpdate => {
      const update = { memo: { ...handle, messageId } };
      const state = event && stateAfter({ body: event });
      if (state && isSettled(state)) return update;
      const opened = this.updates.open(run, remote.callee, handle.taskId, id);
      // This process ends its call itself; the row is for the process that resumes the continuation.
      followed = { ...opened.followed, actId: null };
      return { ...update, rows: [opened.row] };
    };
    let isKnown = false;
    try {
      for await (const event of this.events(run, call, outgoing, memo !== undefined)) {
        const handle = handleOf(event);
        if (handle && !isKnown) {
          isKnown = true;
          yield remember(handle, event);
        }
        for (const update of mirror.updates(event))
          yield followed && !('artifact' in update) ? this.updates.direct(update, remote.callee, followed) : update;
        if (mirror.isSettled) return;
      }
    } catch (error) {
      // With a known remote task a broken stream says nothing about the work; without one the message may not have
      // arrived. An invalid event also breaks the stream; a poll of the task then shows its state.
      const isInvalid = isKnown && RialtoError.from(error).code === 'remote_invalid_response';
      if (!isKnown && (isRefusal(error) || isUnknownOutcome(error))) {
        yield failureUpdate(error);
        return;
      }
      if ((!isKnown && !memo) || run.signal.aborted || !(isInvalid || isBrokenConnection(error))) throw error;
    }
    if (!followed && memo) yield remember(memo);
    if (!followed)
      throw new RialtoError('remote_invalid_response', { message: 'the remote agent answered without a task id' });
    yield* this.follower.follow({ run, remote, followed, mirror }, this.updates.firstWaitMs);
  }

  /**
   * Events of the remote in answer to a message. When it is unknown whether the message arrived, looks up its task,
   * else sends the message once more with the same id. Throws `outcome_unknown` when that attempt fails, too.
   *
   * @param isAnswer the message answers a known remote task, which can be polled.
   */
  private async *events(
    run: TaskRun,
    call: RemoteCall,
    outgoing: Outgoing,
    isAnswer: boolean,
  ): AsyncGenerator<StreamResponse, void> {
    const { act, ...message } = outgoing;
    let hasStarted = false;
    try {
      for await (const event of this.sent(run, { ...call, ...message, id: act() })) {
        hasStarted = true;
        yield event;
      }
      return;
    } catch (error) {
      if (hasStarted || isAnswer || run.signal.aborted || !mayHaveArrived(error)) throw error;
    }
    await sleep(beforeRepeatMs, undefined, { signal: run.signal }).catch(() => undefined);
    if (run.signal.aborted) throw new RialtoError('canceled');
    const lookup = { ...call, messageId: outgoing.key, timeoutMs: this.updates.lookMs };
    const task = await this.client.findTask(run.ctx, lookup).catch(() => undefined);
    if (task) {
      yield { task };
      return;
    }
    hasStarted = false;
    try {
      for await (const event of this.sent(run, { ...call, ...message, id: act() })) {
        hasStarted = true;
        yield event;
      }
    } catch (error) {
      if (hasStarted || run.signal.aborted) throw error;
      throw outcomeUnknown(call, RialtoError.from(error));
    }
  }

  /** Sends the message with a stream where the agent supports one; the stream may last as long as the work. */
  private async *sent(run: TaskRun, call: MessageCall): AsyncGenerator<StreamResponse, void> {
    const { maxRemoteWorkMs: timeoutMs } = this.updates.budget;
    if (call.agent.card?.capabilities.streaming === true) yield* this.client.stream(run.ctx, { ...call, timeoutMs });
    else yield await this.client.send(run.ctx, call);
  }

  private async callOf(run: Omit<TaskRun, 'signal' | 'earlier'> & { signal?: AbortSignal }): Promise<RemoteCall> {
    const { agentId, skillId } = run.agent.executor as RemoteConfig;
    const { byId, bySlug } = await this.registry.snapshot(run.agent.org.id);
    const agent = byId.get(agentId) ?? bySlug.get(agentId);
    if (!agent)
      throw new RialtoError('not_found', {
        message: 'the registered agent that does the work of this agent is no longer registered',
      });
    const dispatched = dispatchedSkill(run.task.metadata);
    const skill = skillOf(agent, run.message.metadata?.skillId ?? dispatched, skillId);
    return {
      agent,
      skillId: skill,
      verb: canonicalName(agent.row.slug, skill),
      sessionId: run.task.id,
      timeoutMs: agent.row.timeoutMs ?? callTimeoutMs,
      signal: run.signal,
      args: argsOf(run),
      ...(dispatched !== undefined && {
        dispatch: {
          workType: `transparent:${storableText(skill, 200)}`,
          input: keptJson(run.message.parts as unknown as Json),
          isPlaced: false,
        },
      }),
    };
  }
}

/** Arguments of the call that a task was adopted from. A message to a published agent has no arguments. */
function argsOf({ agent, task }: Pick<TaskRun, 'agent' | 'task'>): JsonObject | undefined {
  const isAdopted = agent.id === (agent.executor as RemoteConfig).agentId;
  const args = isAdopted ? task.history[0]?.parts[0]?.data : undefined;
  return isJsonObject(args) ? args : undefined;
}

/**
 * Skill to call: the configured one; else the one that the caller or the routing named, if the remote has it; else
 * its first.
 */
function skillOf({ card }: RegisteredAgent, requested: Json | undefined, configured: string | undefined): string {
  const known =
    typeof requested === 'string' && card?.skills.some(({ id }) => id === requested) ? requested : undefined;
  return configured ?? known ?? card?.skills[0]?.id ?? 'chat';
}

/** True when the remote understood the message and refused it with a code of the protocol. */
function isRefusal(error: unknown): boolean {
  const { code, data } = RialtoError.from(error);
  return code === 'remote_error' && typeof data?.remoteCode === 'number';
}

function isUnknownOutcome(error: unknown): boolean {
  return RialtoError.from(error).code === 'outcome_unknown';
}

/** Failure with facts for programs: the code of the remote, or that the outcome is unknown. */
function failureUpdate(error: unknown): TaskUpdate {
  const { code: errorCode, message, data: { remoteCode, ambiguous } = {} } = RialtoError.from(error);
  const metadata = {
    errorCode,
    ...(typeof remoteCode === 'number' && { remoteCode }),
    ...(ambiguous === true && { ambiguous }),
  };
  return {
    status: { state: 'TASK_STATE_FAILED', message: { parts: [{ text: storableText(message, 1_000) }], metadata } },
  };
}

/** True when it is unknown whether the remote has the message. */
function mayHaveArrived(error: unknown): boolean {
  const { code, data } = RialtoError.from(error);
  return code === 'remote_timeout' || data?.ambiguous === true;
}

function outcomeUnknown({ agent }: RemoteCall, last: RialtoError): RialtoError {
  const who = `the agent "${agent.row.slug}"`;
  return new RialtoError('outcome_unknown', {
    message: `it is unknown whether ${who} received the message (last error: ${last.message}); check at the agent before you send it again`,
    data: { ambiguous: true },
    cause: last,
  });
}

/** True when the connection broke or the remote is busy: the remote task may still run. */
function isBrokenConnection(error: unknown): boolean {
  const { code } = RialtoError.from(error);
  return code === 'remote_transport' || code === 'remote_timeout';
}
