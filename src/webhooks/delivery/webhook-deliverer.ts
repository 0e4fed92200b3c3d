import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { isDatabaseAway } from '../../platform/database/outage.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import { mediaTypeOf } from '../rendering/body.js';
import { DeliveryStore, type Claimed, type ConfigKey, type DueDelivery } from './delivery.store.js';
import { DeliveryWatch } from './delivery-watch.js';
import { AdmittedPost } from './admitted-post.js';
import type { Deferral } from '../admission/delivery-admission.js';
import { PushConfigStore } from '../configs/push-config.store.js';
import { Rendering } from '../rendering/rendering.js';
import { verdictOf, type Verdict } from './retry-plan.js';
import { TaskLogService } from '../../tasks/task-log.service.js';
import { WebhookSecretStore } from '../configs/webhook-secret.store.js';
import type { Posted } from './webhook-post.js';

/** The result of a run over one configuration. */
export interface Round {
  readonly delivered: number;
  /** Milliseconds until the next run; absent when it is unknown. */
  readonly againMs?: number;
  /** The failed attempt that ended the run: its delivery, number, status or error, without text of the receiver. */
  readonly flaw?: string;
  /** Why a due delivery could not be tried. */
  readonly deferred?: Later['why'];
}

/** The delivery was not tried: its host may not be posted to now, or the database of the gateway was not available. */
interface Later {
  readonly why: Deferral['why'] | 'database';
  readonly inMs: number;
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
    private readonly configs: PushConfigStore,
    private readonly secrets: WebhookSecretStore,
    private readonly log: TaskLogService,
    private readonly post: AdmittedPost,
    private readonly watch: DeliveryWatch,
  ) {}

  /** Delivers what is due. Two runs of one configuration at the same time are safe. */
  run(key: ConfigKey): Promise<Round> {
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
    const rendering = new Rendering(this.log, key.taskId);
    let delivered = 0;
    let claimed = await this.claim(key);
    for (let left = maxInARow - 1; left >= 0; left--) {
      if (!claimed) return { delivered };
      if (claimed.taken_over) this.watch.takenOver();
      const ended: Ended | Later | undefined = await this.deliver(claimed, rendering, left > 0);
      if (ended) {
        if ('why' in ended)
          return { delivered, deferred: ended.why, ...(ended.why === 'database' && { againMs: ended.inMs }) };
        if (ended.verdict.kind !== 'delivered') return { delivered, ...setbackOf(claimed, ended) };
        delivered++;
      }
      // The job of an event that was appended during the end's commit may have found this delivery still in progress,
      // so claim once more.
      claimed = ended?.next ?? (left > 0 ? await this.claim(key) : undefined);
    }
    return { delivered, againMs: 0 };
  }

  /** Claims the next due delivery; none after the shutdown began. */
  private async claim(key: ConfigKey): Promise<Claimed | undefined> {
    return this.stopping ? undefined : this.deliveries.claim(key, this.post.saturated);
  }

  /** @param claimNext the next delivery of the configuration is wanted. */
  private async deliver(
    claimed: Claimed,
    rendering: Rendering,
    claimNext: boolean,
  ): Promise<Ended | Later | undefined> {
    if (claimed.state === null) return void (await this.deliveries.close(claimed, 'skipped', 'deleted'));
    if (claimed.state === 'disabled')
      return void (await this.deliveries.close(claimed, 'dead', claimed.reason ?? 'disabled'));
    const posted = await this.tryOnce(claimed, rendering).catch(async (err: unknown): Promise<Posted | Later> => {
      // An unavailable database is not an attempt: nothing was sent to the receiver (R1).
      if (isDatabaseAway(err)) {
        await this.recorded(() => this.deliveries.defer(claimed, databaseAwayMs));
        return { why: 'database', inMs: databaseAwayMs };
      }
      // A body that cannot be created or a secret that cannot be opened is a failed attempt, so that it delays later
      // events no longer than one.
      const { task_id: taskId, delivery } = claimed;
      this.watch.log.warn({ err, taskId, delivery }, 'could not prepare a webhook');
      return { durationMs: 0, error: RialtoError.from(err).code };
    });
    return posted && ('why' in posted ? posted : this.settle(claimed, posted, claimNext));
  }

  /** Makes one attempt; undefined when there is nothing to post, or another process took over. */
  private async tryOnce(claimed: Claimed, rendering: Rendering): Promise<Posted | Deferral | undefined> {
    const { delivery: id, format, seq } = claimed;
    const config = this.configs.open(claimed);
    const secrets = claimed.secrets.map((sealed) => this.secrets.open(claimed.org_id, sealed));
    // The configuration may have been replaced while a lost process had the claim, and then the stored body may have
    // another format.
    const storedBody = claimed.taken_over ? null : claimed.body;
    const body = storedBody ?? (await rendering.bodyOf(format, seq));
    if (body === undefined) await this.deliveries.skip(claimed, seq);
    else if (body !== claimed.body && !(await this.deliveries.keepBody(claimed, body))) this.watch.fenced();
    else return this.post.send(claimed, { id, config, secrets, mediaType: mediaTypeOf(format), body });
    return undefined;
  }

  private async settle(claimed: Claimed, posted: Posted, claimNext: boolean): Promise<Ended> {
    const verdict = verdictOf(claimed.format, claimed.attempts - claimed.earlier_attempts, posted, {
      now: systemClock.now(),
      chance: Math.random(),
      failingMs: claimed.failing_ms ?? 0,
    });
    const report = this.watch.tellingOf(claimed, verdict);
    let next: Claimed | undefined;
    if (verdict.kind === 'delivered')
      next = await this.recorded(() => this.delivered(claimed, posted, report.rows, claimNext && !this.stopping));
    else if (!(await this.recorded(() => this.deliveries.failed(claimed, posted, verdict, report.rows))))
      return { posted, verdict: { kind: 'retry', inMs: 0 } };
    this.watch.told(report);
    this.watch.ended(claimed, posted, verdict);
    return { posted, verdict, next };
  }

  /** Stores a success; returns the next due delivery when it was claimed with it. */
  private async delivered(
    claimed: Claimed,
    posted: Posted,
    auditRows: readonly RowChange[],
    claimNext: boolean,
  ): Promise<Claimed | undefined> {
    if (claimed.state !== 'failing') return this.deliveries.delivered(claimed, posted, claimNext);
    await this.deliveries.recovered(claimed, posted, auditRows);
    return undefined;
  }

  /** Retries the write of a result: without it, the delivery would be posted again after its lease. */
  private async recorded<Result>(record: () => Promise<Result>): Promise<Result> {
    for (const pauseMs of recordPausesMs) {
      try {
        return await record();
      } catch (err) {
        if (this.stopping) throw err;
        this.watch.log.warn({ err, pauseMs }, 'could not store the result of a webhook; retrying');
        await sleep(pauseMs);
      }
    }
    return record();
  }
}

/** The end of an attempt, and its consequence. */
interface Ended {
  readonly posted: Posted;
  readonly verdict: Verdict;
  /** Set when this delivery succeeded and the next one of its configuration was claimed with it. */
  readonly next?: Claimed;
}

function setbackOf({ delivery, attempts }: Claimed, { posted, verdict }: Ended): Pick<Round, 'againMs' | 'flaw'> {
  const how = posted.error ?? `status_${posted.status}`;
  const next = verdict.kind === 'retry' ? `tried again in ${Math.ceil(verdict.inMs / 1_000)} s` : 'given up';
  const flaw = `${how}: delivery ${delivery}, attempt ${attempts}, ${Math.round(posted.durationMs)} ms; ${next}`;
  // A dead delivery makes the one behind it due.
  const againMs = verdict.kind === 'retry' ? verdict.inMs : verdict.kind === 'dead' ? 0 : undefined;
  return { flaw, ...(againMs !== undefined && { againMs }) };
}
