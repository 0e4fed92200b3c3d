import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { isDatabaseAway } from '../../platform/database/outage.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import { DeliveryStore, type Claimed, type ConfigKey, type DueDelivery } from './delivery.store.js';
import { DeliveryWatch } from './delivery-watch.js';
import { AdmittedPost } from './admitted-post.js';
import type { Rendering } from '../rendering/rendering.js';
import type { Attempt } from './attempt.js';
import { DeliveryOutcomeStore } from './delivery-outcome.store.js';
import { PostBuilder } from './post-builder.js';
import { verdictOf } from './retry-plan.js';
import type { Posted } from './webhook-post.js';

/** The result of a run over one configuration. */
export interface Round {
  readonly delivered: number;
  /** Milliseconds until the next run; absent when it is unknown. */
  readonly againMs?: number;
  /** The failed attempt that ended the run: its delivery, number, status or error, without text of the receiver. */
  readonly flaw?: string;
  /** Why a due delivery could not be tried. */
  readonly deferred?: Extract<Attempt, { kind: 'deferred' }>['why'];
}

/** Milliseconds until a delivery is due again after the database was not available. */
const databaseAwayMs = 1_000;

/** Most deliveries of one configuration in a row, so that others get their turn. */
const maxInARow = 200;

/** Pauses between attempts to store the result of a post; in total less than the lease. */
const recordPausesMs = [100, 500, 1_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000];

/** Posts the due deliveries of a configuration in order, and stores each attempt. A receiver cannot affect a task. */
@Injectable()
export class WebhookDeliverer implements OnModuleDestroy, BeforeApplicationShutdown {
  private readonly running = new Set<Promise<unknown>>();
  private stopping = false;

  constructor(
    private readonly deliveries: DeliveryStore,
    private readonly outcomes: DeliveryOutcomeStore,
    private readonly posts: PostBuilder,
    private readonly post: AdmittedPost,
    private readonly watch: DeliveryWatch,
  ) {}

  /** Delivers what is due. Two runs of one configuration at the same time are safe. */
  deliverDue(key: ConfigKey): Promise<Round> {
    const run = this.deliverAll(key).finally(() => this.running.delete(run));
    this.running.add(run);
    return run;
  }

  /** Begins no further deliveries. */
  onModuleDestroy(): void {
    this.stopping = true;
  }

  /** Waits until deliveries in progress are over and stored, before the database closes. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.running);
  }

  /** Due deliveries of senders that are not saturated here. @see DeliveryStore.findDue */
  findDue(limit: number): Promise<DueDelivery[]> {
    return this.deliveries.findDue(limit, this.post.saturated);
  }

  /** Makes the waiting retries of a configuration due now, for an operator. */
  makeDueNow(key: ConfigKey): Promise<void> {
    return this.deliveries.makeDueNow(key);
  }

  private async deliverAll(key: ConfigKey): Promise<Round> {
    const rendering = this.posts.renderingOf(key.taskId);
    let delivered = 0;
    let claimed = await this.claimDelivery(key);
    for (let left = maxInARow - 1; left >= 0; left--) {
      if (!claimed) return { delivered };
      if (claimed.isTakenOver) this.watch.countTakeover();
      const attempt = await this.attempt(claimed, rendering, left > 0);
      if (attempt.kind === 'delivered') delivered++;
      else if (attempt.kind !== 'skipped') return { delivered, ...setbackOf(claimed, attempt) };
      const next = attempt.kind === 'delivered' ? attempt.next : undefined;
      // The job of an event that was appended during the end's commit may have found this delivery still in progress,
      // so claim once more.
      claimed = next ?? (left > 0 ? await this.claimDelivery(key) : undefined);
    }
    return { delivered, againMs: 0 };
  }

  /** Claims the next due delivery; none after the shutdown began. */
  private async claimDelivery(key: ConfigKey): Promise<Claimed | undefined> {
    return this.stopping ? undefined : this.deliveries.claim(key, this.post.saturated);
  }

  /** Makes one attempt, and stores its end. @param claimNext the next delivery of the configuration is wanted. */
  private async attempt(claimed: Claimed, rendering: Rendering, claimNext: boolean): Promise<Attempt> {
    if (claimed.state === null) return this.close(claimed, 'skipped', 'deleted');
    if (claimed.state === 'disabled') return this.close(claimed, 'dead', claimed.reason ?? 'disabled');
    const tried = await this.tryOnce(claimed, rendering).catch((error: unknown) => this.afterError(claimed, error));
    return tried.kind === 'posted' ? this.storeEnd(claimed, tried, claimNext) : tried;
  }

  private async close(claimed: Claimed, status: 'dead' | 'skipped', reason: string): Promise<Attempt> {
    await this.outcomes.close(claimed, status, reason);
    return { kind: 'skipped' };
  }

  private async tryOnce(claimed: Claimed, rendering: Rendering): Promise<Posted | Attempt> {
    const post = await this.posts.build(claimed, rendering);
    if (!post) await this.outcomes.skip(claimed);
    else if (post.body !== claimed.body && !(await this.deliveries.keepBody(claimed, post.body)))
      this.watch.countFenced();
    else return this.post.send(claimed, post);
    return { kind: 'skipped' };
  }

  /** Handles an error of the gateway itself: nothing was sent to the receiver. */
  private async afterError(claimed: Claimed, err: unknown): Promise<Posted | Attempt> {
    // An unavailable database is not an attempt.
    if (isDatabaseAway(err)) {
      await this.retryWrite(() => this.deliveries.defer(claimed, databaseAwayMs));
      return { kind: 'deferred', why: 'database', inMs: databaseAwayMs };
    }
    // A body that cannot be created or a secret that cannot be opened is a failed attempt, so that it delays later
    // events no longer than one.
    const { taskId, delivery } = claimed;
    this.watch.log.warn({ err, taskId, delivery }, 'could not prepare a webhook');
    return { kind: 'posted', durationMs: 0, error: RialtoError.from(err).code };
  }

  private async storeEnd(claimed: Claimed, posted: Posted, claimNext: boolean): Promise<Attempt> {
    const verdict = verdictOf(claimed.format, claimed.attempts - claimed.earlierAttempts, posted, {
      now: systemClock.now(),
      chance: Math.random(),
      failingMs: claimed.failingMs ?? 0,
    });
    const events = this.watch.eventsOf(claimed, verdict);
    let next: Claimed | undefined;
    if (verdict.kind === 'delivered')
      next = await this.retryWrite(() => this.delivered(claimed, posted, events.rows, claimNext && !this.stopping));
    else if (!(await this.retryWrite(() => this.outcomes.failed(claimed, posted, verdict, events.rows))))
      return { kind: 'retry', posted, inMs: 0 };
    this.watch.countEvents(events);
    this.watch.reportEnd(claimed, posted, verdict);
    if (verdict.kind === 'delivered') return { kind: 'delivered', next };
    if (verdict.kind === 'retry') return { kind: 'retry', posted, inMs: verdict.inMs };
    return { kind: 'gaveUp', posted, isClosed: verdict.kind === 'closed' };
  }

  /** Stores a success; returns the next due delivery when it was claimed with it. */
  private async delivered(
    claimed: Claimed,
    posted: Posted,
    auditRows: readonly RowChange[],
    claimNext: boolean,
  ): Promise<Claimed | undefined> {
    if (claimed.state !== 'failing') return this.deliveries.delivered(claimed, posted, claimNext);
    await this.outcomes.recovered(claimed, posted, auditRows);
    return undefined;
  }

  /** Retries the write of a result: without it, the delivery would be posted again after its lease. */
  private async retryWrite<Result>(write: () => Promise<Result>): Promise<Result> {
    for (const pauseMs of recordPausesMs) {
      try {
        return await write();
      } catch (err) {
        if (this.stopping) throw err;
        this.watch.log.warn({ err, pauseMs }, 'could not store the result of a webhook; retrying');
        await sleep(pauseMs);
      }
    }
    return write();
  }
}

type Setback = Extract<Attempt, { kind: 'retry' | 'gaveUp' | 'deferred' }>;

/** Tells how a run continues after an attempt that ended it. */
function setbackOf({ delivery, attempts }: Claimed, attempt: Setback): Omit<Round, 'delivered'> {
  if (attempt.kind === 'deferred')
    return { deferred: attempt.why, ...(attempt.why === 'database' && { againMs: attempt.inMs }) };
  const { posted } = attempt;
  const how = posted.error ?? `status_${posted.status}`;
  const next = attempt.kind === 'retry' ? `tried again in ${Math.ceil(attempt.inMs / 1_000)} s` : 'given up';
  const flaw = `${how}: delivery ${delivery}, attempt ${attempts}, ${Math.round(posted.durationMs)} ms; ${next}`;
  if (attempt.kind === 'retry') return { flaw, againMs: attempt.inMs };
  // A dead delivery makes the one behind it due.
  return attempt.isClosed ? { flaw } : { flaw, againMs: 0 };
}
