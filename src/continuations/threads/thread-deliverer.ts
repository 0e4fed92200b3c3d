import { Inject, Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { TaskLogService } from '../../tasks/task-log.service.js';
import { isSettled } from '../../tasks/task-stream.service.js';
import { ThreadAnswerStore, type DueAnswer } from './thread-answer.store.js';
import { answerBody } from './thread-plan.js';
import { ThreadSender } from './thread-sender.js';

/** Limits of concurrent posts: in this process, and to one origin. */
const maxPosts = 32;
const maxPostsPerOrigin = 8;

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
    private readonly sender: ThreadSender,
    @Inject(LOGGER) private readonly log: Logger,
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
  beginDelivery({ id, origin }: DueAnswer): void {
    if (this.room <= 0 || this.posts.has(id) || this.busyOrigins.includes(origin)) return;
    const over = this.deliver(id)
      .catch((err: unknown) => this.log.warn({ err, threadAnswer: id }, 'delivery of a thread answer failed'))
      .finally(() => this.posts.delete(id));
    this.posts.set(id, { origin, over });
  }

  /** Handles one due answer; does nothing when another process has claimed it. */
  async deliver(id: string): Promise<void> {
    const claimed = await this.answers.claim(id);
    if (!claimed) return;
    if (claimed.receipt !== null) return this.sender.finish(claimed);
    const task = await this.tasks.task(claimed.taskId);
    if (claimed.payload !== null) return this.sender.sendAnswer(claimed, claimed.payload);
    if (!task) return this.sender.giveUp(claimed, 'the task is gone');
    if (!isSettled(task.state)) return this.sender.sendProgress(claimed, task);
    await this.sender.sendAnswer(claimed, answerBody(task, { id, threadId: claimed.threadId }));
  }

  /** Begins no more posts. */
  onModuleDestroy(): void {
    this.stopping = true;
  }

  /** Waits until running posts have ended and are recorded, before the database connection closes. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.posts.values()].map(({ over }) => over));
  }
}
