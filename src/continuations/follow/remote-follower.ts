import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { RemoteCall } from '../../a2a-client/remote-call.types.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Json } from '../../kernel/json.js';
import { retryAfterMs } from '../../kernel/retry-after.js';
import type { StreamResponse } from '../../protocol/a2a/model.js';
import type { TaskRun, TaskUpdate } from '../../tasks/executor.port.js';
import { afterRun, isPassing, pollPause, timeOfAttempts } from './continuation-plan.js';
import { ContinuationUpdates, troubleOf } from './continuation-updates.js';
import { ContinuationStore, type Followed } from '../storage/continuation.store.js';
import { EventTap } from './event-tap.js';
import { AgentRemote, type Remote } from './remote.js';
import { PushWaiters, type PushWaiter } from '../push/push-waiters.js';
import { RemotePushStore } from '../push/remote-push.store.js';
import { RemoteMirror } from './remote-mirror.js';
import { KeyedSemaphore } from './keyed-semaphore.js';

/** Looks at one remote at a time, by this process. */
const looksPerRemote = 8;
/** Between two looks that were called for by pushes. */
const leastPauseMs = 250;

/** One remote task while one run follows it. */
export interface Following {
  readonly run: TaskRun;
  readonly remote: Remote;
  readonly followed: Followed;
  readonly mirror: RemoteMirror;
}

/** What a run hears beside its looks. */
interface Ears {
  readonly tap: EventTap | undefined;
  readonly ear: PushWaiter;
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
  private readonly turns = new KeyedSemaphore(looksPerRemote);

  constructor(
    private readonly client: A2AClientService,
    private readonly store: ContinuationStore,
    private readonly updates: ContinuationUpdates,
    private readonly pushes: RemotePushStore,
    private readonly pushWaiters: PushWaiters,
  ) {}

  /** A registered agent as the remote of a call. */
  agentOf(call: RemoteCall): Remote {
    return new AgentRemote(this.client, call, this.updates.lookMs);
  }

  /** Goes on with what another run, perhaps of a process that is gone, had begun. @param memo what the run after this one has to know. */
  async *resume(run: TaskRun, remote: Remote, remoteTaskId: string, memo: Json): AsyncGenerator<TaskUpdate, void> {
    let followed = await this.store.resume(run.task.id, remoteTaskId);
    if (!followed) {
      const opened = this.updates.open(run, remote.callee, remoteTaskId);
      followed = opened.followed;
      yield { memo, rows: [opened.row] };
    }
    yield* this.follow({ run, remote, followed, mirror: new RemoteMirror(run) }, this.updates.budget.runWaitMs);
  }

  /**
   * @param waitMs how long this run lasts when the remote goes on working; with a stream that speaks, as long as all attempts would.
   * @param before the looks of whoever it takes over from.
   */
  async *follow(following: Following, waitMs: number, before?: Progress): AsyncGenerator<TaskUpdate, void> {
    const { run, followed, mirror } = following;
    const { budget } = this.updates;
    const startedAt = systemClock.elapsed();
    const elapsed = (): number => systemClock.elapsed() - startedAt;
    const streamMs = waitMs + timeOfAttempts(followed.attempts, budget);
    const progress: Progress = { polls: 0, ...before };
    let isDue = progress.retryAfterMs === undefined;
    const tap = this.tap(following);
    const ear = this.pushWaiters.add(run.task.id);
    try {
      // Before this ear there was none, and a push that is remembered is not told again.
      isDue ||= following.remote.pushes && (await this.pushes.isOpen(run.task.id));
      for (; ; isDue = true) {
        if (isDue) yield* this.look(following, progress);
        if (mirror.isSettled || run.signal.aborted) return;
        const pause = Math.max(pollPause(progress.polls, budget, Math.random()), progress.retryAfterMs ?? 0);
        const leftMs = followed.leftMs - elapsed();
        const isTrusted = tap?.isTrusted ?? false;
        if (leftMs <= pause || elapsed() + pause >= (isTrusted ? streamMs : waitMs)) {
          const attempts = isTrusted && leftMs > pause ? budget.maxAttempts : followed.attempts;
          yield this.release(following, { ...followed, attempts, leftMs }, progress);
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
    const { run, remote, followed, mirror } = following;
    progress.polls++;
    progress.retryAfterMs = undefined;
    try {
      if (remote.pushes) await this.pushes.forget(run.task.id);
      const look = (): ReturnType<Remote['look']> => remote.look(run, followed.remoteTaskId);
      const { task, pauseMs } = await this.turns.run(remote.callee.id, look);
      progress.retryAfterMs = pauseMs;
      yield* this.mirrored(following, { task }, progress.polls);
    } catch (thrown) {
      if (run.signal.aborted) return;
      const error = RialtoError.from(thrown);
      progress.lastError = troubleOf(error);
      progress.retryAfterMs = retryAfterMs(error.data?.retryAfter, systemClock.now());
      if (isPassing(error)) return;
      mirror.isSettled = true;
      if (error.code === 'denied') void this.endDenied(following, progress.lastError);
      yield this.updates.failed(remote.callee, followed, progress, error);
    }
  }

  /** The stream of the remote task, where its agent has streams and it has time left. */
  private tap({ run, remote, followed }: Following): EventTap | undefined {
    const { leftMs, remoteTaskId } = followed;
    if (leftMs <= 0 || !remote.subscribe) return undefined;
    return new EventTap((stop) => {
      const signal = AbortSignal.any([run.signal, stop]);
      return remote.subscribe!({ ctx: run.ctx, signal }, remoteTaskId, Math.ceil(leftMs));
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
      if (ear.takePush()) until = Math.min(until, begunAt + leastPauseMs);
      if (event) yield* this.mirrored(following, event, 0);
    }
  }

  private *mirrored(
    { remote, followed, mirror }: Following,
    event: StreamResponse,
    polls: number,
  ): Generator<TaskUpdate, void> {
    for (const update of mirror.updates(event)) {
      const seen = { polls, isEmpty: mirror.isEmpty };
      yield 'artifact' in update ? update : this.updates.told(update, remote.callee, followed, seen);
    }
  }

  /** What follows when the remote still works at the end of a run. */
  private release(following: Following, followed: Followed, progress: Progress): TaskUpdate {
    const { callee } = following.remote;
    const next = afterRun({ ...followed, retryAfterMs: progress.retryAfterMs }, this.updates.budget);
    const { polls, lastError } = progress;
    if (next.kind === 'again') return this.updates.defer(followed, { polls, lastError }, next.inMs);
    void this.tellToStop(following).catch(() => undefined); // what it says to that changes nothing
    return this.updates.late(callee, followed, { polls, lastError }, next.why);
  }

  private tellToStop({ run, remote, followed }: Following): Promise<unknown> {
    return remote.stop(run, followed.remoteTaskId);
  }

  /** Its caller may no longer use the remote: the work is not theirs to leave running. What fails is told again by the sweeper. */
  private async endDenied(following: Following, lastError: string | undefined): Promise<void> {
    const { taskId, remoteTaskId } = following.followed;
    await this.tellToStop(following)
      .then(() => this.store.close(taskId, remoteTaskId, 'failed', lastError))
      .catch(() => undefined);
  }
}

async function passed(ms: number, signal: AbortSignal): Promise<undefined> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
