import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { A2AClientService, type RemoteCall } from '../a2a-client/a2a-client.service.js';
import type { CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import type { RowChange } from '../platform/database/row-writer.js';
import { redact } from '../platform/secrets/redact.js';
import type { StreamResponse } from '../protocol/a2a/model.js';
import type { TaskRun, TaskUpdate } from '../tasks/executor.port.js';
import { AgentStats } from '../registry/agent-stats.service.js';
import { failedStates } from '../protocol/a2a/states.js';
import type { StoredTask } from '../tasks/task.types.js';
import { EventTap } from './event-tap.js';
import { endTold, failureSaid, type EndFacts } from './continuation-end.js';
import { afterRun, isPassing, lateText, pollPause, timeOfAttempts, type Budget } from './continuation-plan.js';
import { ContinuationStore, moving, opening, type Followed } from './continuation.store.js';
import type { RemoteMemo } from './remote-message.js';
import { RemoteMirror } from './remote-mirror.js';
import { Turns } from './turns.js';

/** Looks at one agent at a time, by this process. */
const looksPerAgent = 8;
const longestError = 500;

/** What one run of a continuation has seen. */
interface Progress {
  polls: number;
  lastError?: string;
  retryAfterMs?: number;
}

/** Who a continuation is opened for. */
export interface Opener {
  readonly ctx: CallContext;
  readonly task: Pick<StoredTask, 'id' | 'orgId' | 'principal'>;
}

/**
 * Follows remote tasks to their end: by their stream as long as there is one, else by looks until the run is over; then they are put
 * off, or given up at the limits (AN-63…AN-76). Each end, and each step between, is a row in the commit of the task of ours.
 */
@Injectable()
export class RemoteFollower {
  readonly budget: Budget;
  private readonly turns = new Turns(looksPerAgent);

  constructor(
    private readonly client: A2AClientService,
    private readonly store: ContinuationStore,
    private readonly stats: AgentStats,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {
    this.budget = {
      maxRemoteWorkMs: settings.A2A_CONTINUATION_MAX_REMOTE_WORK_MS,
      maxAttempts: settings.A2A_CONTINUATION_MAX_ATTEMPTS,
      runWaitMs: settings.A2A_CONTINUATION_RUN_WAIT_MS,
      pollMs: settings.A2A_CONTINUATION_POLL_MS,
      rescheduleMs: settings.A2A_CONTINUATION_RESCHEDULE_MS,
    };
  }

  /** A new continuation and its row, for the commit that remembers the remote task. */
  open(
    { ctx, task }: Opener,
    { agent }: RemoteCall,
    remoteTaskId: string,
    actId: string | null = null,
  ): { followed: Followed; row: RowChange } {
    const { maxRemoteWorkMs: workMs } = this.budget;
    const id = newId();
    const { requestId } = ctx;
    const row = opening({
      id,
      task_id: task.id,
      org_id: task.orgId,
      agent_id: agent.row.id,
      agent_slug: agent.row.slug,
      agent_url: agent.row.url,
      remote_task_id: remoteTaskId,
      principal: task.principal,
      request_id: requestId,
      act_id: actId,
      work_ms: workMs,
    });
    return {
      followed: { id, taskId: task.id, remoteTaskId, requestId, actId, attempts: 0, leftMs: workMs, ageMs: 0 },
      row,
    };
  }

  /** Goes on with what another run, perhaps of a process that is gone, had begun. */
  async *takeUp(run: TaskRun, call: RemoteCall, memo: RemoteMemo): AsyncGenerator<TaskUpdate, void> {
    let followed = await this.store.takeUp(run.task.id, memo.taskId);
    if (!followed) {
      const opened = this.open(run, call, memo.taskId);
      followed = opened.followed;
      yield { memo: { ...memo }, rows: [opened.row] };
    }
    yield* this.follow(run, call, followed, new RemoteMirror(run), this.budget.runWaitMs);
  }

  /** @param waitMs how long this run lasts when the remote goes on working. */
  async *follow(
    run: TaskRun,
    call: RemoteCall,
    followed: Followed,
    mirror: RemoteMirror,
    waitMs: number,
  ): AsyncGenerator<TaskUpdate, void> {
    const startedAt = systemClock.elapsed();
    const elapsed = (): number => systemClock.elapsed() - startedAt;
    const leftMs = (): number => followed.leftMs - elapsed();
    const progress: Progress = { polls: 0 };
    let { attempts } = followed;
    const streamMs = waitMs + timeOfAttempts(attempts, this.budget);
    const tap = this.tap(run, call, followed);
    try {
      while (!mirror.isSettled) {
        try {
          yield* this.look(run, call, followed, mirror, progress);
        } catch (error) {
          if (run.signal.aborted) return;
          if (!isPassing(error)) {
            yield this.failed(call, followed, progress, RialtoError.from(error));
            return;
          }
          noteTrouble(progress, RialtoError.from(error));
        }
        if (mirror.isSettled) return;
        const pause = Math.max(pollPause(progress.polls, this.budget, Math.random()), progress.retryAfterMs ?? 0);
        if (leftMs() <= pause) break;
        if (elapsed() + pause >= (tap?.isTrusted ? streamMs : waitMs)) {
          if (tap?.isTrusted) attempts = this.budget.maxAttempts;
          break;
        }
        if (tap) yield* this.listen(tap, pause, run, call, followed, mirror);
        else await sleep(pause, undefined, { signal: run.signal });
        if (run.signal.aborted) return;
      }
    } finally {
      tap?.close();
    }
    if (!mirror.isSettled) yield this.letGo(run, call, { ...followed, attempts, leftMs: leftMs() }, progress);
  }

  /** What came on the line that the message was sent on, as the remote said it, with the end of its continuation. */
  direct(update: Parameters<typeof endTold>[0], call: Pick<RemoteCall, 'agent'>, followed: Followed): TaskUpdate {
    const end = 'reply' in update ? endTold(update, { ...factsOf(call, followed), isEmpty: false }) : update;
    if (end.status.state === 'TASK_STATE_WORKING') return end;
    return { ...end, rows: [moving(followed, { status: 'completed', polls: 0 })] };
  }

  /** What was found out later, with the end of its continuation. */
  told(
    update: Parameters<typeof endTold>[0],
    call: Pick<RemoteCall, 'agent'>,
    followed: Followed,
    { polls, isEmpty }: { polls: number; isEmpty: boolean },
  ): TaskUpdate {
    const end = endTold(update, { ...factsOf(call, followed), isEmpty });
    const isOver = end.status.state !== 'TASK_STATE_WORKING';
    if (!isOver) return end;
    const outcome = failedStates.has(end.status.state) ? 'failed' : 'completed';
    return {
      ...end,
      rows: this.closing(call, followed, { status: 'completed', polls }, outcome, 'remote_task_failed'),
    };
  }

  /** What follows when the remote still works at the end of a run. */
  private letGo(
    run: Pick<TaskRun, 'ctx'>,
    call: RemoteCall,
    followed: Followed,
    { polls, lastError, retryAfterMs }: Progress,
  ): TaskUpdate {
    const next = afterRun({ ...followed, retryAfterMs }, this.budget);
    if (next.kind === 'again') {
      const dueInMs = Math.max(1, Math.round(next.inMs));
      const row = moving(followed, { status: 'pending', polls, lastError, dueInMs });
      return { deferred: { lookAgainMs: dueInMs }, rows: [row] };
    }
    this.tellToStop(run, call, followed.remoteTaskId);
    const words = lateText(call.agent.row.slug, next.why, this.budget);
    return this.failure(call, followed, { polls, lastError: lastError ?? words }, words, 'remote_timeout');
  }

  /** Its caller wants it no more. */
  canceled(followed: Followed, polls: number): TaskUpdate {
    return { status: { state: 'TASK_STATE_CANCELED' }, rows: [moving(followed, { status: 'completed', polls })] };
  }

  /** A look that says that there is nothing more to look for. */
  failed(call: RemoteCall, followed: Followed, progress: Progress, error: RialtoError): TaskUpdate {
    noteTrouble(progress, error);
    return this.failure(call, followed, progress, error.message, error.code);
  }

  private failure(
    call: RemoteCall,
    followed: Followed,
    { polls, lastError }: Progress,
    words: string,
    code: string,
  ): TaskUpdate {
    const state = code === 'denied' ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED';
    const message = failureSaid(words, code, { ...factsOf(call, followed), isEmpty: false });
    return {
      status: { state, message },
      rows: this.closing(call, followed, { status: 'failed', polls, lastError }, 'failed', code),
    };
  }

  /** The row that counts the call as active while the remote works on, for the commit of its task. */
  stillActive({ actId, leftMs, taskId }: Followed): RowChange {
    const { statement, row } = this.stats.goesOn(actId!, leftMs);
    return { statement, row: { ...row, task_id: taskId } };
  }

  /** The end of a continuation; of one whose act was handed over, also the end of the call. */
  private closing(
    { agent }: Pick<RemoteCall, 'agent'>,
    followed: Followed,
    to: Parameters<typeof moving>[1],
    outcome: 'completed' | 'failed',
    code: string,
  ): RowChange[] {
    const { actId, taskId, ageMs } = followed;
    if (actId === null) return [moving(followed, to)];
    const { id: agentId, orgId } = agent.row;
    const error = outcome === 'failed' ? { code } : undefined;
    const { costPerTask } = agent.card ?? {};
    const ended = this.stats.ended({ actId, orgId, agentId, costPerTask, outcome, durationMs: ageMs, error, taskId });
    return [
      moving(followed, to),
      ...ended.map(({ statement, row }) => ({ statement, row: { ...row, task_id: taskId } })),
    ];
  }

  /** The stream of the remote task, where its agent has streams and it has time left. */
  private tap(run: TaskRun, call: RemoteCall, { leftMs, remoteTaskId: taskId }: Followed): EventTap | undefined {
    if (leftMs <= 0 || call.agent.card?.capabilities.streaming !== true) return undefined;
    return new EventTap((stop) => {
      const signal = AbortSignal.any([run.signal, stop]);
      return this.client.subscribe(run.ctx, { ...call, signal, taskId, timeoutMs: Math.ceil(leftMs) });
    });
  }

  private async *listen(
    tap: EventTap,
    ms: number,
    run: TaskRun,
    call: RemoteCall,
    followed: Followed,
    mirror: RemoteMirror,
  ): AsyncGenerator<TaskUpdate, void> {
    const until = systemClock.elapsed() + ms;
    for (let left = ms; left > 0 && !mirror.isSettled; left = until - systemClock.elapsed()) {
      const event = await tap.next(left, run.signal);
      if (run.signal.aborted) return;
      if (event) yield* this.mirrored(event, call, followed, mirror, 0);
    }
  }

  private async *look(
    run: TaskRun,
    call: RemoteCall,
    followed: Followed,
    mirror: RemoteMirror,
    progress: Progress,
  ): AsyncGenerator<TaskUpdate, void> {
    const ask = { ...call, taskId: followed.remoteTaskId, timeoutMs: this.settings.A2A_CONTINUATION_POLL_TIMEOUT_MS };
    progress.polls++;
    progress.retryAfterMs = undefined;
    const task = await this.turns.take(call.agent.row.id, () => this.client.getTask(run.ctx, ask));
    yield* this.mirrored({ task }, call, followed, mirror, progress.polls);
  }

  private *mirrored(
    event: StreamResponse,
    call: RemoteCall,
    followed: Followed,
    mirror: RemoteMirror,
    polls: number,
  ): Generator<TaskUpdate, void> {
    for (const update of mirror.updates(event))
      yield 'artifact' in update ? update : this.told(update, call, followed, { polls, isEmpty: mirror.isEmpty });
  }

  private tellToStop(run: Pick<TaskRun, 'ctx'>, call: RemoteCall, taskId: string): void {
    const timeoutMs = this.settings.A2A_CONTINUATION_POLL_TIMEOUT_MS;
    void this.client.cancel(run.ctx, { ...call, taskId, timeoutMs, signal: undefined }).catch(() => undefined);
  }
}

function noteTrouble(progress: Progress, { message, data }: RialtoError): void {
  progress.lastError = (redact(message) as string).slice(0, longestError);
  const seconds = Number(data?.retryAfter);
  if (Number.isFinite(seconds) && seconds > 0) progress.retryAfterMs = seconds * 1_000;
}

function factsOf(
  { agent }: Pick<RemoteCall, 'agent'>,
  { id, requestId, remoteTaskId }: Followed,
): Omit<EndFacts, 'isEmpty'> {
  return { agent: agent.row.slug, requestId, continuationId: id, taskId: remoteTaskId };
}
