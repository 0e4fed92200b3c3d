import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { TaskLogService } from '../../tasks/task-log.service.js';
import { isSettled } from '../../tasks/task-stream.service.js';
import type { StoredTask } from '../../tasks/task.types.js';
import { ThreadAnswerStore, type ClaimedAnswer, type DueAnswer } from './thread-answer.store.js';
import { answerOf, mostTries, progressOf, verdictOf } from './thread-plan.js';
import { ThreadPost } from './thread-post.js';

/** Limits of concurrent posts: in this process, and to one origin. */
const maxPosts = 32;
const maxPostsPerOrigin = 8;
/** Pause before the receipt is written again: 100, 500, 2,000 ms. */
const receiptPauseMs = (retry: number): number => Math.min(2_000, 100 * 5 ** retry);
/** Pause between two updates of a progress message, in milliseconds. */
const progressPauseMs = 2_000;

/**
 * Delivers answers to their threads (AN-75): claims, stores the body, sends it with an idempotency key, stores the
 * receipt, then deletes the secrets. After a crash in between, the next sender sends the same body with the same key.
 * With a stored receipt it sends nothing.
 */
@Injectable()
export class ThreadDeliverer implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly posts = new Map<string, { readonly origin: string; readonly over: Promise<void> }>();
  private stopping = false;

  constructor(
    private readonly answers: ThreadAnswerStore,
    private readonly tasks: TaskLogService,
    private readonly post: ThreadPost,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'A2A_CONTINUATION_RECEIPT_RETRIES'>,
  ) {}

  /** How many more posts may begin. */
  get room(): number {
    return this.stopping ? 0 : maxPosts - this.posts.size;
  }

  /** Origins with the maximum of concurrent posts. */
  get busyOrigins(): string[] {
    const counts = new Map<string, number>();
    for (const { origin } of this.posts.values()) counts.set(origin, (counts.get(origin) ?? 0) + 1);
    return [...counts].filter(([, count]) => count >= maxPostsPerOrigin).map(([origin]) => origin);
  }

  /** Begins to deliver an answer; does not wait for the receiver. */
  begin({ id, origin }: DueAnswer): void {
    if (this.room <= 0 || this.posts.has(id) || this.busyOrigins.includes(origin)) return;
    const over = this.run(id)
      .catch((err: unknown) => this.log.warn({ err, threadAnswer: id }, 'delivery of a thread answer failed'))
      .finally(() => this.posts.delete(id));
    this.posts.set(id, { origin, over });
  }

  /** Handles one due answer; does nothing when another process has claimed it. */
  async run(id: string): Promise<void> {
    const claimed = await this.answers.claim(id);
    if (!claimed) return;
    if (claimed.receipt !== null) return this.fenced(await this.answers.finish(claimed));
    const task = await this.tasks.task(claimed.task_id);
    if (!task && claimed.payload === null) return this.giveUp(claimed, 'the task is gone');
    if (task && claimed.payload === null && !isSettled(task.state)) return this.tellProgress(claimed, task);
    await this.deliver(claimed, claimed.payload ?? answerOf(task!, { id, threadId: claimed.thread_id }));
  }

  /** Begins no more posts. */
  onModuleDestroy(): void {
    this.stopping = true;
  }

  /** Waits until running posts have ended and are recorded, before the database connection closes. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.posts.values()].map(({ over }) => over));
  }

  private async deliver(claimed: ClaimedAnswer, body: NonNullable<ClaimedAnswer['payload']>): Promise<void> {
    const { id: mark, attempts } = claimed;
    // Every process that sent this answer died before the result was stored.
    if (attempts >= mostTries) return this.giveUp(claimed, 'exhausted: no attempt ended');
    if (!(await this.answers.deliver(claimed, body))) return this.fenced(false);
    const { messageId, error, ...end } = await this.post.send({ ...this.answers.addressOf(claimed), mark, body });
    const verdict = verdictOf(attempts + 1, end, { now: systemClock.now(), chance: Math.random() });
    if (verdict.kind === 'dead') return this.giveUp(claimed, `${verdict.why}: ${error}`);
    if (verdict.kind === 'again')
      return this.fenced(await this.answers.defer(claimed, verdict.inMs, error ?? 'unanswered'));
    const receipt = { status: end.status!, ...(messageId !== undefined && { messageId }) };
    const isStored = await this.retryWrite(() => this.answers.keepReceipt(claimed, receipt));
    this.fenced(isStored && (await this.answers.finish(claimed)));
  }

  /** Sends one progress message without a retry, because the next event brings another one. */
  private async tellProgress(claimed: ClaimedAnswer, task: StoredTask): Promise<void> {
    const { id, thread_id: threadId } = claimed;
    const isOwner = claimed.owns_progress || (await this.answers.own(claimed));
    if (isOwner) {
      const mark = `${id}-${task.seq}`;
      const body = progressOf(task, { id: mark, threadId });
      await this.post.send({ ...this.answers.addressOf(claimed), mark, body });
    }
    this.fenced(await this.answers.told(claimed, task.seq, progressPauseMs));
  }

  private async giveUp(claimed: ClaimedAnswer, reason: string): Promise<void> {
    const { id: threadAnswer, task_id: taskId } = claimed;
    this.log.warn({ threadAnswer, taskId, reason }, 'thread answer given up');
    this.fenced(await this.answers.bury(claimed, reason));
  }

  /** Retries the write of a receipt, because without a receipt the answer is sent again. */
  private async retryWrite(record: () => Promise<boolean>): Promise<boolean> {
    for (let retry = 0; retry < this.settings.A2A_CONTINUATION_RECEIPT_RETRIES; retry++) {
      const pauseMs = receiptPauseMs(retry);
      try {
        return await record();
      } catch (err) {
        this.log.warn({ err, pauseMs }, 'write of a thread receipt failed; retrying');
        await sleep(pauseMs);
      }
    }
    return record();
  }

  private fenced(isWritten: boolean): void {
    if (!isWritten) this.metrics.fencedWrites.inc({ kind: 'threads' });
  }
}
