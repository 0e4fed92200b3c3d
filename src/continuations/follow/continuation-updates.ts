import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import { storableText } from '../../kernel/json.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import { redact } from '../../platform/secrets/redact.js';
import { failedStates } from '../../protocol/a2a/states.js';
import { AgentStats } from '../../registry/agent-stats.js';
import type { TaskUpdate } from '../../tasks/executor.port.js';
import type { StoredTask } from '../../tasks/task.types.js';
import { endTold, failureSaid, type EndFacts } from './continuation-end.js';
import { isLost, lateText, lostText, type Budget } from './continuation-plan.js';
import { moving, ofTask, opening, type Followed } from '../storage/continuation.store.js';
import type { Callee } from './remote.js';

const longestError = 500;

/** Task and context that a continuation is opened for. */
export interface Opener {
  readonly ctx: CallContext;
  readonly task: Pick<StoredTask, 'id' | 'orgId' | 'principal'>;
}

/** Observations of a run that follows a continuation. */
export interface Seen {
  readonly polls: number;
  readonly lastError?: string;
}

type End = Parameters<typeof endTold>[0];

/** Builds the updates of a continuation as updates of its task; each carries the row that is committed with it. */
@Injectable()
export class ContinuationUpdates {
  readonly budget: Budget;
  /** How long the process that sent the message follows the remote task itself, in milliseconds. */
  readonly firstWaitMs: number;
  /** Timeout of one poll, in milliseconds. */
  readonly pollTimeoutMs: number;

  constructor(
    private readonly stats: AgentStats,
    @Inject(SETTINGS) settings: Settings,
  ) {
    this.pollTimeoutMs = settings.A2A_CONTINUATION_POLL_TIMEOUT_MS;
    this.firstWaitMs = settings.A2A_CONTINUATION_PRECLAIM_WAIT_MS;
    this.budget = {
      maxRemoteWorkMs: settings.A2A_CONTINUATION_MAX_REMOTE_WORK_MS,
      maxAttempts: settings.A2A_CONTINUATION_MAX_ATTEMPTS,
      runWaitMs: settings.A2A_CONTINUATION_RUN_WAIT_MS,
      pollMs: settings.A2A_CONTINUATION_POLL_MS,
      rescheduleMs: settings.A2A_CONTINUATION_RESCHEDULE_MS,
    };
  }

  /**
   * Builds a new continuation and its row, for the commit that stores the id of the remote task.
   *
   * @param actId the act that is ended together with the continuation.
   */
  openContinuation({ ctx, task }: Opener, callee: Callee, remoteTaskId: string, actId: string | null = null) {
    const { maxRemoteWorkMs: leftMs } = this.budget;
    const { requestId } = ctx;
    const followed: Followed = {
      id: newId(),
      taskId: task.id,
      remoteTaskId,
      requestId,
      actId,
      attempts: 0,
      leftMs,
      ageMs: 0,
    };
    const row = opening({
      id: followed.id,
      taskId: task.id,
      orgId: task.orgId,
      agentId: callee.id,
      agentSlug: callee.slug,
      agentUrl: callee.url,
      remoteTaskId,
      principal: task.principal,
      requestId,
      actId,
      workMs: leftMs,
    });
    return { followed, row };
  }

  /** Converts an update that arrived as the direct answer to the message; keeps the text of the remote. */
  direct(update: End, callee: Callee, followed: Followed): TaskUpdate {
    const end = 'reply' in update ? endTold(update, { ...endFacts(callee, followed), isEmpty: false }) : update;
    if (end.status.state === 'TASK_STATE_WORKING') return end;
    return { ...end, rows: [moving(followed, { status: 'completed', polls: 0 })] };
  }

  /**
   * Converts an update that a later poll, stream or push brought.
   *
   * @param isEmpty true when the remote sent neither artifacts nor text before.
   */
  relayed(
    update: End,
    callee: Callee,
    followed: Followed,
    { polls, isEmpty }: Seen & { isEmpty: boolean },
  ): TaskUpdate {
    const end = endTold(update, { ...endFacts(callee, followed), isEmpty });
    const { state } = end.status;
    if (state === 'TASK_STATE_WORKING') return end;
    const code = failedStates.has(state) ? 'remote_task_failed' : undefined;
    return { ...end, rows: this.closing(callee, followed, { status: 'completed', polls }, code) };
  }

  /** Defers the continuation because the remote task still runs; it is resumed later. */
  defer(followed: Followed, seen: Seen, inMs: number): TaskUpdate {
    const dueInMs = Math.max(1, Math.round(inMs));
    return { deferred: { lookAgainMs: dueInMs }, rows: [moving(followed, { status: 'pending', ...seen, dueInMs })] };
  }

  /** Ends the continuation because the remote task still runs at a limit. */
  late(callee: Callee, followed: Followed, { polls, lastError }: Seen, why: 'time' | 'attempts'): TaskUpdate {
    const words = lateText(callee.title, why, this.budget);
    return this.failure(callee, followed, { polls, lastError: lastError ?? words }, words, 'remote_timeout');
  }

  /** Ends the continuation after a poll failed with an error that no later poll can change. */
  failed(callee: Callee, followed: Followed, { polls }: Seen, error: RialtoError): TaskUpdate {
    const seen = { polls, lastError: troubleOf(error) };
    if (isLost(error)) return this.failure(callee, followed, seen, lostText(callee.title), 'remote_lost');
    return this.failure(callee, followed, seen, error.message, error.code);
  }

  /** Ends the continuation because its caller canceled the task. */
  canceled(followed: Followed, { polls }: Seen): TaskUpdate {
    return { status: { state: 'TASK_STATE_CANCELED' }, rows: [moving(followed, { status: 'completed', polls })] };
  }

  /** Row that counts the call as active while the remote task runs, for the commit of its task. */
  stillActive({ actId, leftMs, taskId }: Followed): RowChange {
    return ofTask(taskId, this.stats.goesOn(actId!, leftMs));
  }

  private failure(callee: Callee, followed: Followed, seen: Seen, words: string, code: string): TaskUpdate {
    const isRejected = code === 'denied' || code === 'approval_required';
    const state = isRejected ? 'TASK_STATE_REJECTED' : 'TASK_STATE_FAILED';
    const message = failureSaid(words, code, { ...endFacts(callee, followed), isEmpty: false });
    // The remote task of a denied call still runs until it is canceled. The continuation stays open until the gateway
    // has canceled it, at the latest with the sweeper.
    const to = code === 'denied' ? ({ status: 'pending', dueInMs: 1 } as const) : ({ status: 'failed' } as const);
    return { status: { state, message }, rows: this.closing(callee, followed, { ...to, ...seen }, code) };
  }

  /**
   * Rows that end a continuation, and the call of its act when the act was handed over.
   *
   * @param code error code of a failure.
   */
  private closing(callee: Callee, followed: Followed, to: Parameters<typeof moving>[1], code?: string): RowChange[] {
    const { actId, taskId, ageMs: durationMs } = followed;
    if (actId === null) return [moving(followed, to)];
    const { id: agentId, orgId, costPerTask } = callee;
    const outcome = code === undefined ? 'completed' : 'failed';
    const error = code === undefined ? undefined : { code };
    const ended = this.stats.ended({ actId, orgId, agentId, costPerTask, outcome, durationMs, error, taskId });
    return [moving(followed, to), ...ended.map((row) => ofTask(taskId, row))];
  }
}

/** Text of an error for operators: short and without secrets. */
export function troubleOf({ message }: RialtoError): string {
  return storableText(redact(message) as string, longestError);
}

function endFacts({ title: who }: Callee, { id, requestId, remoteTaskId }: Followed): Omit<EndFacts, 'isEmpty'> {
  return { who, requestId, continuationId: id, taskId: remoteTaskId };
}
