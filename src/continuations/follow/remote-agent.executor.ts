import { Injectable } from '@nestjs/common';
import type { RemoteCall } from '../../a2a-client/remote-call.types.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type ActId } from '../../kernel/ids.js';
import { isJsonObject, storableText, type Json, type JsonObject } from '../../kernel/json.js';
import { keptJson } from '../../platform/secrets/kept-json.js';
import { encryptedBytes, isEncrypted } from '../../protocol/a2a/encrypted-parts.js';
import { messageArgs } from '../../protocol/a2a/request/message-args.js';
import type { Message, StreamResponse } from '../../protocol/a2a/model.js';
import { canonicalName } from '../../protocol/mcp/tool-names.js';
import { addressesOf } from '../../registry/agent-addresses.js';
import { dispatchedSkill } from '../../registry/own-routing.js';
import type { ExecutorConfig } from '../../registry/published.types.js';
import { RegistryService } from '../../registry/registry.service.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';
import { messageFacts } from '../../tasks/task-verbs.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import type { Followed } from '../storage/continuation.store.js';
import { isSettled, stateAfter } from '../../tasks/task-stream.service.js';
import { ContinuationUpdates } from './continuation-updates.js';
import { RemoteFollower } from './remote-follower.js';
import { handleOf, memoOf, outwardId, type RemoteMemo } from './outward-message.js';
import { RemoteMessages } from './remote-messages.js';
import { RemoteMirror } from './remote-mirror.js';

type RemoteConfig = Extract<ExecutorConfig, { kind: 'remote' }>;

const callTimeoutMs = 30_000;

/**
 * Runs the tasks of a published agent at a registered agent and passes on its events. A remote task that does not end
 * at once is stored as a continuation before anything else. After that, a lost process or stream leads to a poll and
 * never to a second send (I5).
 */
@Injectable()
export class RemoteAgentExecutor implements TaskExecutor {
  readonly kind = 'remote';
  readonly pure = false;

  constructor(
    private readonly registry: RegistryService,
    private readonly follower: RemoteFollower,
    private readonly updates: ContinuationUpdates,
    private readonly messages: RemoteMessages,
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    const call = await this.findCall(run);
    const memo = memoOf(run);
    if (memo?.messageId === outwardId(run))
      return yield* this.follower.resume(run, this.follower.remoteFor(call), memo.taskId, { ...memo });
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
  async abandon(run: Omit<TaskRun, 'signal' | 'earlier' | 'stored'>): Promise<void> {
    const memo = memoOf(run);
    if (!memo) return;
    await this.messages.cancel(run, await this.findCall(run), memo.taskId);
  }

  private async *send(run: TaskRun, call: RemoteCall, memo: RemoteMemo | undefined): AsyncGenerator<TaskUpdate, void> {
    const mirror = new RemoteMirror(run);
    const remote = this.follower.remoteFor(call);
    const outgoing = await this.messages.compose(run, call, memo);
    const { key: messageId } = outgoing;
    let id = newId<ActId>();
    const newActId = () => (id = newId<ActId>());
    let followed: Followed | undefined;
    const remember = (handle: { taskId: string; contextId?: string }, event?: StreamResponse): TaskUpdate => {
      const update = { memo: { ...handle, messageId } };
      const state = event && stateAfter({ body: event });
      if (state && isSettled(state)) return update;
      const opened = this.updates.openContinuation(run, remote.callee, handle.taskId, id);
      // This process ends its call itself; the row is for the process that resumes the continuation.
      followed = { ...opened.followed, actId: null };
      return { ...update, rows: [opened.row] };
    };
    let isKnown = false;
    try {
      for await (const event of this.messages.send(run, call, outgoing, { isAnswer: memo !== undefined, newActId })) {
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
      if (!isKnown && (isMessageRefusal(error) || isUnknownOutcome(error))) {
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

  async addresses({ agent }: Pick<TaskRun, 'agent'>): Promise<JsonObject | undefined> {
    const found = await this.findAgent(agent);
    return found && addressesOf(found);
  }

  private async findAgent({ executor, org }: TaskRun['agent']): Promise<RegisteredAgent | undefined> {
    const { agentId } = executor as RemoteConfig;
    const { byId, bySlug } = await this.registry.snapshot(org.id);
    return byId.get(agentId) ?? bySlug.get(agentId);
  }

  private async findCall(
    run: Omit<TaskRun, 'signal' | 'earlier' | 'stored'> & { signal?: AbortSignal },
  ): Promise<RemoteCall> {
    const { skillId } = run.agent.executor as RemoteConfig;
    const agent = await this.findAgent(run.agent);
    if (!agent)
      throw new RialtoError('not_found', {
        message: 'the registered agent that does the work of this agent is no longer registered',
      });
    const dispatched = dispatchedSkill(run.task.metadata);
    const skill = chooseSkill(agent, run.message.metadata?.skillId ?? dispatched, skillId);
    return {
      agent,
      skillId: skill,
      verb: canonicalName(agent.row.slug, skill),
      sessionId: run.task.id,
      timeoutMs: agent.row.timeoutMs ?? callTimeoutMs,
      signal: run.signal,
      ...argsOf(run),
      ...(dispatched !== undefined && {
        dispatch: {
          workType: `transparent:${storableText(skill, 200)}`,
          input: keptJson(loggedInput(run.message)),
          isPlaced: false,
        },
      }),
    };
  }
}

/** Content of a message as the log of dispatches shows it. Of an encrypted message it shows the size only (RI-05). */
function loggedInput({ parts }: Message): Json {
  return isEncrypted(parts) ? { encrypted: true, bytes: encryptedBytes(parts) } : (parts as unknown as Json);
}

/** Arguments for policies: those of the call that a task was adopted from, else the data of the message. */
function argsOf({ ctx, agent, task, message }: Pick<TaskRun, 'ctx' | 'agent' | 'task' | 'message'>) {
  const isAdopted = agent.id === (agent.executor as RemoteConfig).agentId;
  const adopted = isAdopted ? task.history[0]?.parts[0]?.data : undefined;
  if (isAdopted) return { args: isJsonObject(adopted) ? adopted : undefined };
  const { args, unclear } = messageArgs(message);
  return { args, message: { ...messageFacts(ctx, message), unclear } };
}

/**
 * Skill to call: the configured one; else the one that the caller or the routing named, if the remote has it; else
 * its first.
 */
function chooseSkill({ card }: RegisteredAgent, requested: Json | undefined, configured: string | undefined): string {
  const known =
    typeof requested === 'string' && card?.skills.some(({ id }) => id === requested) ? requested : undefined;
  return configured ?? known ?? card?.skills[0]?.id ?? 'chat';
}

/** True when the remote understood the message and refused it with a code of the protocol. */
function isMessageRefusal(error: unknown): boolean {
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

/** True when the connection broke or the remote is busy: the remote task may still run. */
function isBrokenConnection(error: unknown): boolean {
  const { code } = RialtoError.from(error);
  return code === 'remote_transport' || code === 'remote_timeout';
}
