import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { RemoteCall } from '../../a2a-client/remote-call.types.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { Json } from '../../kernel/json.js';
import { retryAfterMs } from '../../kernel/backoff.js';
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

/** Concurrent polls of one remote by this process. */
const pollsPerRemote = 8;
/** Shortest pause between two polls that pushes cause, in milliseconds. */
const leastPauseMs = 250;

/** A remote task while one run follows it. */
export interface Following {
  readonly run: TaskRun;
  readonly remote: Remote;
  readonly followed: Followed;
  readonly mirror: RemoteMirror;
}

/** Sources of news for a run beside its polls. */
interface NewsSources {
  readonly tap: EventTap | undefined;
  readonly waiter: PushWaiter;
}

/** Progress of a run. */
interface Progress {
  polls: number;
  lastError?: string;
  retryAfterMs?: number;
}

/**
 * Follows remote tasks to their end: by their stream while there is one, by polls, and by polls that pushes of their
 * agents cause. At the end of a run, defers the task or gives it up at the limits (AN-63…AN-76).
 */
@Injectable()
export class RemoteFollower {
  private readonly pollLimit = new KeyedSemaphore(pollsPerRemote);

  constructor(
    private readonly client: A2AClientService,
    private readonly store: ContinuationStore,
    private readonly updates: ContinuationUpdates,
    private readonly pushes: RemotePushStore,
    private readonly pushWaiters: PushWaiters,
  ) {}

  /** Wraps the registered agent of a call as a remote. */
  remoteFor(call: RemoteCall): Remote {
    return new AgentRemote(this.client, call, this.updates.pollTimeoutMs);
  }

  /**
   * Resumes work that another run began, perhaps in a process that no longer exists.
   *
   * @param memo facts that the next run needs.
   */
  async *resume(run: TaskRun, remote: Remote, remoteTaskId: string, memo: Json): AsyncGenerator<TaskUpdate, void> {
    let followed = await this.store.resume(run.task.id, remoteTaskId);
    if (!followed) {
      const opened = this.updates.openContinuation(run, remote.callee, remoteTaskId);
      followed = opened.followed;
      yield { memo, rows: [opened.row] };
    }
    yield* this.follow({ run, remote, followed, mirror: new RemoteMirror(run) }, this.updates.budget.runWaitMs);
  }

  /**
   * Follows a remote task until it settles or the run is over.
   *
   * @param waitMs how long this run lasts while the remote task still runs; with a stream that sends events, as long
   * as all attempts would last.
   * @param before polls of the run that this one takes over from.
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
    const waiter = this.pushWaiters.add(run.task.id);
    try {
      // A push that came before this waiter existed is stored and not announced again, so check for one now.
      isDue ||= following.remote.pushes && (await this.pushes.hasPush(run.task.id));
      for (; ; isDue = true) {
        if (isDue) yield* this.pollRemote(following, progress);
        if (mirror.isSettled || run.signal.aborted) return;
        const pause = Math.max(pollPause(progress.polls, budget, Math.random()), progress.retryAfterMs ?? 0);
        const leftMs = followed.leftMs - elapsed();
        const isTrusted = tap?.isTrusted ?? false;
        if (leftMs <= pause || elapsed() + pause >= (isTrusted ? streamMs : waitMs)) {
          const attempts = isTrusted && leftMs > pause ? budget.maxAttempts : followed.attempts;
          yield this.deferOrGiveUp(following, { ...followed, attempts, leftMs }, progress);
          return;
        }
        yield* this.followEvents(following, { tap, waiter }, pause);
        if (mirror.isSettled || run.signal.aborted) return;
      }
    } finally {
      waiter.close();
      tap?.close();
    }
  }

  /**
   * Polls the remote task and yields its changes. A failed poll ends the task if the error says something about the
   * task.
   */
  private async *pollRemote(following: Following, progress: Progress): AsyncGenerator<TaskUpdate, void> {
    const { run, remote, followed, mirror } = following;
    progress.polls++;
    progress.retryAfterMs = undefined;
    try {
      if (remote.pushes) await this.pushes.deletePush(run.task.id);
      const poll = (): ReturnType<Remote['poll']> => remote.poll(run, followed.remoteTaskId);
      const { task, pauseMs } = await this.pollLimit.run(remote.callee.id, poll);
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

  /** Opens the stream of the remote task, if its agent supports streams and there is time left. */
  private tap({ run, remote, followed }: Following): EventTap | undefined {
    const { leftMs, remoteTaskId } = followed;
    if (leftMs <= 0 || !remote.subscribe) return undefined;
    return new EventTap((stop) => {
      const signal = AbortSignal.any([run.signal, stop]);
      return remote.subscribe!({ ctx: run.ctx, signal }, remoteTaskId, Math.ceil(leftMs));
    });
  }

  /** Yields the events of the stream for `ms` milliseconds, or until a push; only waits when there is no stream. */
  private async *followEvents(
    following: Following,
    { tap, waiter }: NewsSources,
    ms: number,
  ): AsyncGenerator<TaskUpdate, void> {
    const { run, mirror } = following;
    const begunAt = systemClock.elapsed();
    let until = begunAt + ms;
    for (let left = ms; left > 0 && !mirror.isSettled; left = until - systemClock.elapsed()) {
      const signal = AbortSignal.any([run.signal, waiter.signal]);
      const event = tap ? await tap.next(left, signal) : await sleepUntil(left, signal);
      if (run.signal.aborted) return;
      if (waiter.takePush()) until = Math.min(until, begunAt + leastPauseMs);
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
      yield 'artifact' in update ? update : this.updates.relayed(update, remote.callee, followed, seen);
    }
  }

  /** Update for a remote task that still runs at the end of a run: defers it, or gives it up at a limit. */
  private deferOrGiveUp(following: Following, followed: Followed, progress: Progress): TaskUpdate {
    const { callee } = following.remote;
    const next = afterRun({ ...followed, retryAfterMs: progress.retryAfterMs }, this.updates.budget);
    const { polls, lastError } = progress;
    if (next.kind === 'again') return this.updates.defer(followed, { polls, lastError }, next.inMs);
    void this.cancelRemote(following).catch(() => undefined); // the answer changes nothing
    return this.updates.late(callee, followed, { polls, lastError }, next.why);
  }

  private cancelRemote({ run, remote, followed }: Following): Promise<unknown> {
    return remote.cancelTask(run, followed.remoteTaskId);
  }

  /**
   * Cancels the remote task of a caller that may no longer use the remote, so that it does not run on. After an error
   * the sweeper cancels again.
   */
  private async endDenied(following: Following, lastError: string | undefined): Promise<void> {
    const { taskId, remoteTaskId } = following.followed;
    await this.cancelRemote(following)
      .then(() => this.store.close(taskId, remoteTaskId, 'failed', lastError))
      .catch(() => undefined);
  }
}

async function sleepUntil(ms: number, signal: AbortSignal): Promise<undefined> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
