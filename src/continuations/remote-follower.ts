import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { A2AClientService, type RemoteCall } from '../a2a-client/a2a-client.service.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import type { StreamResponse } from '../protocol/a2a/model.js';
import type { TaskRun, TaskUpdate } from '../tasks/executor.port.js';
import { afterRun, isPassing, pollPause, timeOfAttempts } from './continuation-plan.js';
import { ContinuationUpdates, troubleOf } from './continuation-updates.js';
import { ContinuationStore, type Followed } from './continuation.store.js';
import { EventTap } from './event-tap.js';
import { PushBell, type PushEar } from './push-bell.js';
import type { RemoteMemo } from './remote-message.js';
import { RemotePushStore } from './remote-push.store.js';
import { RemoteMirror } from './remote-mirror.js';
import { Turns } from './turns.js';

/** Looks at one agent at a time, by this process. */
const looksPerAgent = 8;
/** Between two looks that were called for by pushes. */
const leastPauseMs = 250;

/** One remote task while one run follows it. */
export interface Following {
  readonly run: TaskRun;
  readonly call: RemoteCall;
  readonly followed: Followed;
  readonly mirror: RemoteMirror;
}

/** What a run hears beside its looks. */
interface Ears {
  readonly tap: EventTap | undefined;
  readonly ear: PushEar;
}

/** How a run has fared. */
interface Progress {
  polls: number;
  lastError?: string;
  retryAfterMs?: number;
}

/**
 * Follows remote tasks to their end: by their stream as long as there is one, by looks, and by looks that their agents call for; at the
 * end of the run they are put off, or given up at the limits (AN-63…AN-76).
 */
@Injectable()
export class RemoteFollower {
  private readonly turns = new Turns(looksPerAgent);

  constructor(
    private readonly client: A2AClientService,
    private readonly store: ContinuationStore,
    private readonly updates: ContinuationUpdates,
    private readonly pushes: RemotePushStore,
    private readonly bell: PushBell,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** Goes on with what another run, perhaps of a process that is gone, had begun. */
  async *takeUp(run: TaskRun, call: RemoteCall, memo: RemoteMemo): AsyncGenerator<TaskUpdate, void> {
    let followed = await this.store.takeUp(run.task.id, memo.taskId);
    if (!followed) {
      const opened = this.updates.open(run, call, memo.taskId);
      followed = opened.followed;
      yield { memo: { ...memo }, rows: [opened.row] };
    }
    yield* this.follow({ run, call, followed, mirror: new RemoteMirror(run) }, this.updates.budget.runWaitMs);
  }

  /** @param waitMs how long this run lasts when the remote goes on working; with a stream that speaks, as long as all attempts would. */
  async *follow(following: Following, waitMs: number): AsyncGenerator<TaskUpdate, void> {
    const { run, followed, mirror } = following;
    const { budget } = this.updates;
    const startedAt = systemClock.elapsed();
    const elapsed = (): number => systemClock.elapsed() - startedAt;
    const streamMs = waitMs + timeOfAttempts(followed.attempts, budget);
    const progress: Progress = { polls: 0 };
    const tap = this.tap(following);
    const ear = this.bell.listen(run.task.id);
    try {
      for (;;) {
        yield* this.look(following, progress);
        if (mirror.isSettled || run.signal.aborted) return;
        const pause = Math.max(pollPause(progress.polls, budget, Math.random()), progress.retryAfterMs ?? 0);
        const leftMs = followed.leftMs - elapsed();
        const isTrusted = tap?.isTrusted ?? false;
        if (leftMs <= pause || elapsed() + pause >= (isTrusted ? streamMs : waitMs)) {
          const attempts = isTrusted && leftMs > pause ? budget.maxAttempts : followed.attempts;
          yield this.letGo(following, { ...followed, attempts, leftMs }, progress);
          return;
        }
        yield* this.listen(following, { tap, ear }, pause);
        if (mirror.isSettled || run.signal.aborted) return;
      }
    } finally {
      ear.close();
      tap?.close();
    }
  }

  /** What a look brings; a failed one that says something about the task ends it. */
  private async *look(following: Following, progress: Progress): AsyncGenerator<TaskUpdate, void> {
    const { run, call, followed, mirror } = following;
    const ask = { ...call, taskId: followed.remoteTaskId, timeoutMs: this.settings.A2A_CONTINUATION_POLL_TIMEOUT_MS };
    progress.polls++;
    progress.retryAfterMs = undefined;
    try {
      if (mayPush(call)) await this.pushes.forget(run.task.id);
      const task = await this.turns.take(call.agent.row.id, () => this.client.getTask(run.ctx, ask));
      yield* this.mirrored(following, { task }, progress.polls);
    } catch (thrown) {
      if (run.signal.aborted) return;
      const error = RialtoError.from(thrown);
      progress.lastError = troubleOf(error);
      const seconds = Number(error.data?.retryAfter);
      if (seconds > 0) progress.retryAfterMs = seconds * 1_000;
      if (isPassing(error)) return;
      mirror.isSettled = true;
      if (error.code === 'denied') void this.endDenied(following, progress.lastError);
      yield this.updates.failed(call, followed, progress, error);
    }
  }

  /** The stream of the remote task, where its agent has streams and it has time left. */
  private tap({ run, call, followed }: Following): EventTap | undefined {
    const { leftMs, remoteTaskId: taskId } = followed;
    if (leftMs <= 0 || call.agent.card?.capabilities.streaming !== true) return undefined;
    return new EventTap((stop) => {
      const signal = AbortSignal.any([run.signal, stop]);
      return this.client.subscribe(run.ctx, { ...call, signal, taskId, timeoutMs: Math.ceil(leftMs) });
    });
  }

  /** What the stream says within so many milliseconds, or until a push; without a stream only they pass. */
  private async *listen(following: Following, { tap, ear }: Ears, ms: number): AsyncGenerator<TaskUpdate, void> {
    const { run, mirror } = following;
    const begunAt = systemClock.elapsed();
    let until = begunAt + ms;
    for (let left = ms; left > 0 && !mirror.isSettled; left = until - systemClock.elapsed()) {
      const signal = AbortSignal.any([run.signal, ear.signal]);
      const event = tap ? await tap.next(left, signal) : await passed(left, signal);
      if (run.signal.aborted) return;
      if (ear.heard()) until = Math.min(until, begunAt + leastPauseMs);
      if (event) yield* this.mirrored(following, event, 0);
    }
  }

  private *mirrored(
    { call, followed, mirror }: Following,
    event: StreamResponse,
    polls: number,
  ): Generator<TaskUpdate, void> {
    for (const update of mirror.updates(event)) {
      const seen = { polls, isEmpty: mirror.isEmpty };
      yield 'artifact' in update ? update : this.updates.told(update, call, followed, seen);
    }
  }

  /** What follows when the remote still works at the end of a run. */
  private letGo(following: Following, followed: Followed, progress: Progress): TaskUpdate {
    const { call } = following;
    const next = afterRun({ ...followed, retryAfterMs: progress.retryAfterMs }, this.updates.budget);
    const { polls, lastError } = progress;
    if (next.kind === 'again') return this.updates.putOff(followed, { polls, lastError }, next.inMs);
    void this.tellToStop(following).catch(() => undefined); // what it says to that changes nothing
    return this.updates.late(call, followed, { polls, lastError }, next.why);
  }

  private tellToStop({ run, call, followed }: Following): Promise<unknown> {
    const timeoutMs = this.settings.A2A_CONTINUATION_POLL_TIMEOUT_MS;
    return this.client.cancel(run.ctx, { ...call, taskId: followed.remoteTaskId, timeoutMs, signal: undefined });
  }

  /** Its caller may no longer use the agent: the work is not theirs to leave running. What fails is told again by the sweeper. */
  private async endDenied(following: Following, lastError: string | undefined): Promise<void> {
    const { taskId, remoteTaskId } = following.followed;
    await this.tellToStop(following)
      .then(() => this.store.close(taskId, remoteTaskId, 'failed', lastError))
      .catch(() => undefined);
  }
}

function mayPush({ agent: { card } }: RemoteCall): boolean {
  return card?.capabilities.pushNotifications === true;
}

async function passed(ms: number, signal: AbortSignal): Promise<undefined> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
