import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../kernel/json.js';
import { keptJson } from '../platform/secrets/kept-json.js';
import type { Artifact, Message, Part, StreamResponse, Task } from '../protocol/a2a/model.js';
import { interruptedStates, terminalStates, type TaskState } from '../protocol/a2a/states.js';
import { canonicalName } from '../protocol/mcp/tool-names.js';
import { dispatchMember } from '../registry/own-routing.service.js';
import type { ExecutorConfig } from '../registry/published.types.js';
import { RegistryService } from '../registry/registry.service.js';
import type { RegisteredAgent } from '../registry/registry.types.js';
import type { Said, TaskExecutor, TaskRun, TaskUpdate } from '../tasks/executor.port.js';
import { A2AClientService, type RemoteCall } from './a2a-client.service.js';

type RemoteConfig = Extract<ExecutorConfig, { kind: 'remote' }>;

const lookMs = { first: 500, most: 10_000 };
const callTimeoutMs = 30_000;
/** A stream may be as long as the work; beyond, the remote task is looked at. */
const streamTimeoutMs = 1_800_000;

/** What a later run has to know of the remote task. */
interface RemoteMemo {
  readonly taskId: string;
  readonly contextId?: string;
  /** The newest message of ours that the remote has. */
  readonly messageId: string;
}

/**
 * The work of an agent of ours done by a registered one: its events become ours. The id of the remote task is remembered before
 * anything else; from then on a lost process or stream means looking, never sending again (reliability 4.4, I5).
 */
@Injectable()
export class RemoteAgentExecutor implements TaskExecutor {
  readonly kind = 'remote';
  readonly pure = false;

  constructor(
    private readonly client: A2AClientService,
    private readonly registry: RegistryService,
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    const call = await this.callOf(run);
    const memo = memoOf(run);
    if (memo?.messageId === outwardId(run)) return yield* this.look(run, call, memo.taskId, new Mirror(run));
    yield* this.send(run, call, memo);
  }

  /** After a cancel here the remote is told; that it obeys is not needed. */
  async abandon(run: Omit<TaskRun, 'signal' | 'earlier'>): Promise<void> {
    const memo = memoOf(run);
    if (memo) await this.client.cancel(run.ctx, { ...(await this.callOf(run)), taskId: memo.taskId });
  }

  private async *send(run: TaskRun, call: RemoteCall, memo: RemoteMemo | undefined): AsyncGenerator<TaskUpdate, void> {
    const mirror = new Mirror(run);
    const params = { message: outward(run, call.skillId, memo), configuration: { returnImmediately: true } };
    const streams = call.agent.card?.capabilities.streaming === true;
    let remoteId = memo?.taskId;
    try {
      const events = streams
        ? this.client.stream(run.ctx, { ...call, timeoutMs: streamTimeoutMs, params })
        : once(await this.client.send(run.ctx, { ...call, params }));
      for await (const event of events) {
        const seen = handleOf(event);
        if (seen && seen.taskId !== remoteId) {
          remoteId = seen.taskId;
          yield { memo: { ...seen, messageId: params.message.messageId } };
        }
        yield* mirror.updates(event);
        if (mirror.isSettled) return;
      }
    } catch (error) {
      // With a known remote task a broken stream says nothing about the work; without one the message may not have arrived.
      if (remoteId === undefined || run.signal.aborted || !isBrokenLine(error)) throw error;
    }
    if (remoteId === undefined)
      throw new RialtoError('remote_invalid_response', { message: 'the remote agent named no task' });
    yield* this.look(run, call, remoteId, mirror);
  }

  /** Asks for the remote task until it is settled, less and less often. */
  private async *look(
    run: TaskRun,
    call: RemoteCall,
    taskId: string,
    mirror: Mirror,
  ): AsyncGenerator<TaskUpdate, void> {
    for (let pause = lookMs.first; ; pause = Math.min(pause * 1.5, lookMs.most)) {
      try {
        const task = await this.client.getTask(run.ctx, { ...call, taskId });
        yield* mirror.updates({ task });
        if (mirror.isSettled) return;
      } catch (error) {
        if (run.signal.aborted || !isBrokenLine(error)) throw error;
      }
      await sleep(pause, undefined, { signal: run.signal });
    }
  }

  private async callOf(run: Omit<TaskRun, 'signal' | 'earlier'> & { signal?: AbortSignal }): Promise<RemoteCall> {
    const { agentId, skillId } = run.agent.executor as RemoteConfig;
    const { byId, bySlug } = await this.registry.snapshot(run.agent.org.id);
    const agent = byId.get(agentId) ?? bySlug.get(agentId);
    if (!agent) throw new RialtoError('not_found', { message: 'the agent behind this one is no longer registered' });
    const dispatch = dispatchOf(run.task.metadata);
    const skill = skillOf(agent, run.message.metadata?.skillId ?? dispatch?.skillId, skillId);
    return {
      agent,
      skillId: skill,
      verb: canonicalName(agent.row.slug, skill),
      sessionId: run.task.id,
      timeoutMs: agent.row.timeoutMs ?? callTimeoutMs,
      signal: run.signal,
      ...(dispatch && {
        dispatch: {
          workType: `transparent:${skill.slice(0, 200)}`,
          input: keptJson(run.message.parts as unknown as Json),
          isPlaced: false,
        },
      }),
    };
  }
}

/** What was decided of a task whose caller named no agent. */
function dispatchOf(metadata: JsonObject | undefined): JsonObject | undefined {
  const decided = metadata?.[dispatchMember];
  return isJsonObject(decided) ? decided : undefined;
}

/** The skill that the caller, or the choice of the agent, names if the remote has it, else the configured one, else its first. */
function skillOf({ card }: RegisteredAgent, asked: Json | undefined, configured: string | undefined): string {
  const known = typeof asked === 'string' && card?.skills.some(({ id }) => id === asked) ? asked : undefined;
  return known ?? configured ?? card?.skills[0]?.id ?? 'chat';
}

function memoOf({ task }: Pick<TaskRun, 'task'>): RemoteMemo | undefined {
  return task.memo === undefined ? undefined : (task.memo as unknown as RemoteMemo);
}

/** The same for every try of one message, so that a remote that keeps count takes it once. */
function outwardId({ task, message }: Pick<TaskRun, 'task' | 'message'>): string {
  const turn = task.history.filter(({ role }) => role === 'ROLE_USER').indexOf(message);
  return `${task.id}-${turn}`;
}

/** The caller's message as ours to the remote: its ids belong to this house and stay in it. */
function outward(run: TaskRun, skillId: string, memo: RemoteMemo | undefined): Message {
  const { parts, metadata } = run.message;
  return {
    messageId: outwardId(run),
    role: 'ROLE_USER',
    parts,
    metadata: { ...metadata, skillId },
    ...(memo && { taskId: memo.taskId, ...(memo.contextId !== undefined && { contextId: memo.contextId }) }),
  };
}

function handleOf(event: StreamResponse): { taskId: string; contextId?: string } | undefined {
  if ('task' in event)
    return { taskId: event.task.id, ...(event.task.contextId && { contextId: event.task.contextId }) };
  if ('message' in event) return undefined;
  const { taskId, contextId } = 'statusUpdate' in event ? event.statusUpdate : event.artifactUpdate;
  return { taskId, contextId };
}

/** Turns what a remote says into what happened here; says nothing twice. */
class Mirror {
  private state: TaskState;
  private readonly parts: Map<string, readonly Part[]>;
  isSettled = false;

  constructor({ task }: TaskRun) {
    this.state = task.state;
    this.parts = new Map(task.artifacts.map(({ artifactId, parts }) => [artifactId, parts]));
  }

  *updates(event: StreamResponse): Generator<TaskUpdate, void> {
    if ('message' in event) {
      this.isSettled = true;
      yield { reply: said(event.message) };
    } else if ('artifactUpdate' in event) {
      const { artifact, append, lastChunk } = event.artifactUpdate;
      const before = append ? (this.parts.get(artifact.artifactId) ?? []) : [];
      this.parts.set(artifact.artifactId, [...before, ...artifact.parts]);
      yield { artifact, append, lastChunk };
    } else if ('statusUpdate' in event) yield* this.move(event.statusUpdate.status);
    else {
      yield* this.artifacts(event.task.artifacts ?? []);
      yield* this.move(event.task.status);
    }
  }

  private *artifacts(artifacts: readonly Artifact[]): Generator<TaskUpdate, void> {
    for (const artifact of artifacts) {
      if (isDeepStrictEqual(this.parts.get(artifact.artifactId), artifact.parts)) continue;
      this.parts.set(artifact.artifactId, artifact.parts);
      yield { artifact, lastChunk: true };
    }
  }

  private *move({ state: told, message }: Task['status']): Generator<TaskUpdate, void> {
    // What nobody knows, and a task that only waits to begin, is work under way (F29).
    const state = told === 'TASK_STATE_UNSPECIFIED' || told === 'TASK_STATE_SUBMITTED' ? 'TASK_STATE_WORKING' : told;
    const isRest = terminalStates.has(state) || interruptedStates.has(state);
    if (state === this.state && !message && !isRest) return;
    this.state = state;
    this.isSettled = isRest;
    yield { status: { state, ...(message && { message: said(message) }) } };
  }
}

function said({ parts, metadata, extensions }: Message): Said {
  return { parts, ...(metadata && { metadata }), ...(extensions && { extensions }) };
}

/** The line broke, or the remote is busy: the task there may well go on. */
function isBrokenLine(error: unknown): boolean {
  const { code } = RialtoError.from(error);
  return code === 'remote_transport' || code === 'remote_timeout';
}

async function* once(reply: StreamResponse): AsyncGenerator<StreamResponse, void> {
  yield await Promise.resolve(reply);
}
