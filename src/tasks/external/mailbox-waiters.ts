import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { MailboxStore } from '../storage/mailbox.store.js';

const pollMs = 1_000;

/** One waiting request: notified when a task may be available, over when there is no reason to wait any more. */
class Waiter {
  isOver = false;
  private isNotified = false;
  private wake?: () => void;

  notify(): void {
    this.isNotified = true;
    this.wake?.();
  }

  end(): void {
    this.isOver = true;
    this.notify();
  }

  async notified(): Promise<void> {
    if (!this.isNotified) await new Promise<void>((resolve) => (this.wake = resolve));
    this.isNotified = false;
  }
}

/**
 * Wakes the requests of this process that wait for tasks of a mailbox: by a notice, and by one slow poll of the rows.
 */
@Injectable()
export class MailboxWaiters implements OnModuleDestroy {
  private readonly waiters = new Map<string, Set<Waiter>>();
  private readonly timer = setInterval(() => void this.pollMailboxes(), pollMs).unref();
  private polling = false;
  private closed = false;

  constructor(
    private readonly store: MailboxStore,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Calls `take` at once and after each notification until it returns something; returns undefined when `waitMs` is
   * over, or at once when the client has disconnected. Throws `unavailable` when this process stops, so that the worker
   * asks another process.
   */
  async firstOf<Taken>(
    agentId: string,
    { waitMs, gone }: { waitMs: number; gone: AbortSignal },
    take: () => Promise<Taken | undefined>,
  ): Promise<Taken | undefined> {
    const waiter = this.addWaiter(agentId);
    const end = (): void => waiter.end();
    const timer = setTimeout(end, waitMs);
    gone.addEventListener('abort', end, { once: true });
    try {
      while (!gone.aborted) {
        const isLast = waiter.isOver;
        const taken = await take();
        if (taken === undefined && this.closed) throw stopping();
        if (taken !== undefined || isLast) return taken;
        await waiter.notified();
      }
      return undefined;
    } finally {
      clearTimeout(timer);
      gone.removeEventListener('abort', end);
      this.removeWaiter(agentId, waiter);
    }
  }

  @OnNotice('mailbox.filled')
  notify({ agentId }: Notice<'mailbox.filled'>): void {
    for (const waiter of this.waiters.get(agentId) ?? []) waiter.notify();
  }

  /** Ends all waits when this process stops. */
  onModuleDestroy(): void {
    this.closed = true;
    clearInterval(this.timer);
    for (const waiters of this.waiters.values()) for (const waiter of waiters) waiter.end();
  }

  private addWaiter(agentId: string): Waiter {
    const waiter = new Waiter();
    this.waiters.set(agentId, (this.waiters.get(agentId) ?? new Set()).add(waiter));
    return waiter;
  }

  private removeWaiter(agentId: string, waiter: Waiter): void {
    const waiters = this.waiters.get(agentId);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.waiters.delete(agentId);
  }

  /** Notices may be lost, and there is no notice for a lease that expires. */
  private async pollMailboxes(): Promise<void> {
    if (this.polling || this.waiters.size === 0) return;
    this.polling = true;
    try {
      for (const agentId of await this.store.filled([...this.waiters.keys()])) this.notify({ agentId });
    } catch (err) {
      this.log.debug({ err }, 'the mailboxes could not be polled');
    } finally {
      this.polling = false;
    }
  }
}

function stopping(): RialtoError {
  const data = { retryAfterSeconds: 1 };
  return new RialtoError('unavailable', { message: 'this gateway process is stopping; ask again in a second', data });
}
