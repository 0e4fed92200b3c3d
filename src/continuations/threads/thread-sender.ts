import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import type { JsonObject } from '../../kernel/json.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import type { StoredTask } from '../../tasks/task.types.js';
import { ThreadAnswerStore, type ClaimedAnswer } from './thread-answer.store.js';
import { mostTries, progressBody, verdictOf } from './thread-plan.js';
import { ThreadPost } from './thread-post.js';

/** Pause before the receipt is written again: 100, 500, 2,000 ms. */
const receiptPauseMs = (retry: number): number => Math.min(2_000, 100 * 5 ** retry);
/** Pause between two updates of a progress message, in milliseconds. */
const progressPauseMs = 2_000;

/** Sends claimed answers and progress messages to their threads, and stores how each post ended. */
@Injectable()
export class ThreadSender {
  constructor(
    private readonly answers: ThreadAnswerStore,
    private readonly post: ThreadPost,
    private readonly metrics: Metrics,
    @Inject(LOGGER) private readonly log: Logger,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'A2A_CONTINUATION_RECEIPT_RETRIES'>,
  ) {}

  /** Makes one attempt to send an answer. */
  async sendAnswer(claimed: ClaimedAnswer, body: JsonObject): Promise<void> {
    const { id: mark, attempts } = claimed;
    // Every process that sent this answer died before the result was stored.
    if (attempts >= mostTries) return this.giveUp(claimed, 'exhausted: no attempt ended');
    if (!(await this.answers.beginDelivery(claimed, body))) return this.countFenced(false);
    const { messageId, error, ...end } = await this.post.send({ ...this.answers.openAddress(claimed), mark, body });
    const verdict = verdictOf(attempts + 1, end, { now: systemClock.now(), chance: Math.random() });
    if (verdict.kind === 'dead') return this.giveUp(claimed, `${verdict.why}: ${error}`);
    if (verdict.kind === 'again')
      return this.countFenced(await this.answers.defer(claimed, verdict.inMs, error ?? 'unanswered'));
    const receipt = { status: end.status!, ...(messageId !== undefined && { messageId }) };
    const isStored = await this.retryWrite(() => this.answers.keepReceipt(claimed, receipt));
    this.countFenced(isStored && (await this.answers.finish(claimed)));
  }

  /** Sends one progress message without a retry, because the next event brings another one. */
  async sendProgress(claimed: ClaimedAnswer, task: StoredTask): Promise<void> {
    const { id, threadId } = claimed;
    const isOwner = claimed.ownsProgress || (await this.answers.ownProgress(claimed));
    if (isOwner) {
      const mark = `${id}-${task.seq}`;
      const body = progressBody(task, { id: mark, threadId });
      await this.post.send({ ...this.answers.openAddress(claimed), mark, body });
    }
    this.countFenced(await this.answers.recordProgress(claimed, task.seq, progressPauseMs));
  }

  /** Ends an answer that already has a receipt. */
  async finish(claimed: ClaimedAnswer): Promise<void> {
    this.countFenced(await this.answers.finish(claimed));
  }

  async giveUp(claimed: ClaimedAnswer, reason: string): Promise<void> {
    const { id: threadAnswer, taskId } = claimed;
    this.log.warn({ threadAnswer, taskId, reason }, 'thread answer given up');
    this.countFenced(await this.answers.bury(claimed, reason));
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

  private countFenced(isWritten: boolean): void {
    if (!isWritten) this.metrics.fencedWrites.inc({ kind: 'threads' });
  }
}
