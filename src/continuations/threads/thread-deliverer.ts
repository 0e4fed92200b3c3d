import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import { TaskLogService } from '../../tasks/task-log.service.js';
import { isSettled } from '../../tasks/task-stream.service.js';
import type { StoredTask } from '../../tasks/task.types.js';
import { ThreadAnswerStore, type ClaimedAnswer, type DueAnswer } from './thread-answer.store.js';
import { answerOf, mostTries, progressOf, verdictOf } from './thread-plan.js';
import { ThreadPost } from './thread-post.js';

/** Posts under way in this process, and to one host. */
const mostHere = 32;
const mostPerOrigin = 8;
/** Before a receipt is written again: 100, 500, 2,000 ms. */
const receiptPauseMs = (retry: number): number => Math.min(2_000, 100 * 5 ** retry);
/** Between two changes of a progress message. */
const progressPauseMs = 2_000;

/**
 * Brings answers to their threads (AN-75): claimed, written down, sent with a mark, the receipt kept, and then scrubbed. Whatever dies in
 * between, the next one sends the same with the same mark, and nothing once there is a receipt.
 */
@Injectable()
export class ThreadDeliverer implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly here = new Map<string, { readonly origin: string; readonly over: Promise<void> }>();
  private stopping = false;

  constructor(
    private readonly answers: ThreadAnswerStore,
    private readonly tasks: TaskLogService,
    private readonly post: ThreadPost,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'A2A_CONTINUATION_RECEIPT_RETRIES'>,
  ) {}

  /** How many more may be begun. */
  get room(): number {
    return this.stopping ? 0 : mostHere - this.here.size;
  }

  /** Hosts with as many posts under way as they get. */
  get busyOrigins(): string[] {
    const counts = new Map<string, number>();
    for (const { origin } of this.here.values()) counts.set(origin, (counts.get(origin) ?? 0) + 1);
    return [...counts].filter(([, count]) => count >= mostPerOrigin).map(([origin]) => origin);
  }

  /** Without waiting for the receiver. */
  begin({ id, origin }: DueAnswer): void {
    if (this.room <= 0 || this.here.has(id) || this.busyOrigins.includes(origin)) return;
    const over = this.run(id)
      .catch((err: unknown) => this.log.warn({ err, threadAnswer: id }, 'an answer to a thread could not be delivered'))
      .finally(() => this.here.delete(id));
    this.here.set(id, { origin, over });
  }

  /** One look at one that is due; nothing when somebody else has it. */
  async run(id: string): Promise<void> {
    const claimed = await this.answers.claim(id);
    if (!claimed) return;
    if (claimed.receipt !== null) return this.fenced(await this.answers.finish(claimed));
    const task = await this.tasks.task(claimed.task_id);
    if (!task && claimed.payload === null) return this.giveUp(claimed, 'the task is gone');
    if (task && claimed.payload === null && !isSettled(task.state)) return this.tellProgress(claimed, task);
    await this.deliver(claimed, claimed.payload ?? answerOf(task!, { id, threadId: claimed.thread_id }));
  }

  /** Nothing more is begun. */
  onModuleDestroy(): void {
    this.stopping = true;
  }

  /** What is on its way is over, and recorded, before the database goes. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.here.values()].map(({ over }) => over));
  }

  private async deliver(claimed: ClaimedAnswer, body: NonNullable<ClaimedAnswer['payload']>): Promise<void> {
    const { id: mark, attempts } = claimed;
    // Those who sent it last died of it, each time.
    if (attempts >= mostTries) return this.giveUp(claimed, 'exhausted: no try came to an end');
    if (!(await this.answers.deliver(claimed, body))) return this.fenced(false);
    const { messageId, error, ...end } = await this.post.send({ ...this.answers.addressOf(claimed), mark, body });
    const verdict = verdictOf(attempts + 1, end, Math.random());
    if (verdict.kind === 'dead') return this.giveUp(claimed, `${verdict.why}: ${error}`);
    if (verdict.kind === 'again')
      return this.fenced(await this.answers.defer(claimed, verdict.inMs, error ?? 'unanswered'));
    const receipt = { status: end.status!, ...(messageId !== undefined && { messageId }) };
    const isKept = await this.recorded(() => this.answers.keepReceipt(claimed, receipt));
    this.fenced(isKept && (await this.answers.finish(claimed)));
  }

  /** One try: the next news bring another. */
  private async tellProgress(claimed: ClaimedAnswer, task: StoredTask): Promise<void> {
    const { id, thread_id: threadId } = claimed;
    const isOurs = claimed.owns_progress || (await this.answers.own(claimed));
    if (isOurs) {
      const mark = `${id}-${task.seq}`;
      const body = progressOf(task, { id: mark, threadId });
      await this.post.send({ ...this.answers.addressOf(claimed), mark, body });
    }
    await this.answers.told(claimed, task.seq, progressPauseMs);
  }

  private async giveUp(claimed: ClaimedAnswer, reason: string): Promise<void> {
    const { id: threadAnswer, task_id: taskId } = claimed;
    this.log.warn({ threadAnswer, taskId, reason }, 'an answer to a thread was given up');
    this.fenced(await this.answers.bury(claimed, reason));
  }

  /** A receipt that is not kept makes somebody send again; so a database that hiccups is asked again. */
  private async recorded(record: () => Promise<boolean>): Promise<boolean> {
    for (let retry = 0; retry < this.settings.A2A_CONTINUATION_RECEIPT_RETRIES; retry++) {
      const pauseMs = receiptPauseMs(retry);
      try {
        return await record();
      } catch (err) {
        this.log.warn({ err, pauseMs }, 'the receipt of a thread could not be kept; it is tried again');
        await sleep(pauseMs);
      }
    }
    return record();
  }

  private fenced(isWritten: boolean): void {
    if (!isWritten) this.metrics.fencedWrites.inc({ kind: 'threads' });
  }
}
