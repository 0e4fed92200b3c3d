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

/** What a look at a configuration came to. */
export interface Round {
  readonly delivered: number;
  /** In how many milliseconds there is something to do again; absent when nobody knows. */
  readonly againMs?: number;
  /** The try that failed and ended the round: its delivery, number, status or error. Nothing that was said. */
  readonly flaw?: string;
  /** Why what is due could not be tried. */
  readonly deferred?: Later['why'];
}

/** Was not tried: the host may not be posted to now, or our own database was away. */
interface Later {
  readonly why: Deferral['why'] | 'database';
  readonly inMs: number;
}

/** Until a delivery is looked at again that our own database kept from being tried. */
const databaseAwayMs = 1_000;

/** Deliveries of one configuration in a row; then others have their turn. */
const maxInARow = 200;

/** Before the outcome of a post is recorded again: all together less than the claim lasts. */
const recordPausesMs = [100, 500, 1_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000];

/** Posts what is due of a configuration, in order, each try recorded. What a receiver does harms no task. */
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

  /** May run twice at once. */
  run(key: ConfigKey): Promise<Round> {
    const run = this.deliverAll(key).finally(() => this.running.delete(run));
    this.running.add(run);
    return run;
  }

  /** Nothing more is begun. */
  onModuleDestroy(): void {
    this.stopping = true;
  }

  /** What is on its way is over, and recorded, before the database goes. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.running);
  }

  /** What is due of senders that need not wait here. @see DeliveryStore.findDue */
  findDue(limit: number): Promise<DueDelivery[]> {
    return this.deliveries.findDue(limit, this.post.saturated);
  }

  /** By hand: what waits for its next try is tried now. */
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
      // What came while the end was committed rang for somebody who found this one still under way, so it is asked once more.
      claimed = ended?.next ?? (left > 0 ? await this.claim(key) : undefined);
    }
    return { delivered, againMs: 0 };
  }

  /** The next that is due; none once nothing more is begun. */
  private async claim(key: ConfigKey): Promise<Claimed | undefined> {
    return this.stopping ? undefined : this.deliveries.claim(key, this.post.saturated);
  }

  /** @param goesOn the next of its configuration is wanted. */
  private async deliver(claimed: Claimed, rendering: Rendering, goesOn: boolean): Promise<Ended | Later | undefined> {
    if (claimed.state === null) return void (await this.deliveries.close(claimed, 'skipped', 'deleted'));
    if (claimed.state === 'disabled')
      return void (await this.deliveries.close(claimed, 'dead', claimed.reason ?? 'disabled'));
    const posted = await this.tryOnce(claimed, rendering).catch(async (err: unknown): Promise<Posted | Later> => {
      // Trouble of our own is no attempt: nothing has left for the receiver (R1).
      if (isDatabaseAway(err)) {
        await this.recorded(() => this.deliveries.defer(claimed, databaseAwayMs));
        return { why: 'database', inMs: databaseAwayMs };
      }
      // What cannot be put into words or opened is a failed try, so that it holds back later events no longer than one.
      const { task_id: taskId, delivery } = claimed;
      this.watch.log.warn({ err, taskId, delivery }, 'a webhook could not be prepared');
      return { durationMs: 0, error: RialtoError.from(err).code };
    });
    return posted && ('why' in posted ? posted : this.settle(claimed, posted, goesOn));
  }

  /** Undefined when nothing is to be posted, or somebody else took over. */
  private async tryOnce(claimed: Claimed, rendering: Rendering): Promise<Posted | Deferral | undefined> {
    const { delivery: id, format, seq } = claimed;
    const config = this.configs.open(claimed);
    const secrets = claimed.secrets.map((sealed) => this.secrets.open(claimed.org_id, sealed));
    // Its configuration may have been replaced while somebody had it who is lost: the kept words may be of another format.
    const kept = claimed.taken_over ? null : claimed.body;
    const body = kept ?? (await rendering.bodyOf(format, seq));
    if (body === undefined) await this.deliveries.skip(claimed, seq);
    else if (body !== claimed.body && !(await this.deliveries.keepBody(claimed, body))) this.watch.fenced();
    else return this.post.send(claimed, { id, config, secrets, mediaType: mediaTypeOf(format), body });
    return undefined;
  }

  private async settle(claimed: Claimed, posted: Posted, goesOn: boolean): Promise<Ended> {
    const verdict = verdictOf(claimed.format, claimed.attempts - claimed.earlier_attempts, posted, {
      now: systemClock.now(),
      chance: Math.random(),
      failingMs: claimed.failing_ms ?? 0,
    });
    const told = this.watch.tellingOf(claimed, verdict);
    let next: Claimed | undefined;
    if (verdict.kind === 'delivered')
      next = await this.recorded(() => this.delivered(claimed, posted, told.rows, goesOn && !this.stopping));
    else if (!(await this.recorded(() => this.deliveries.failed(claimed, posted, verdict, told.rows))))
      return { posted, verdict: { kind: 'retry', inMs: 0 } };
    this.watch.told(told);
    this.watch.ended(claimed, posted, verdict);
    return { posted, verdict, next };
  }

  /** Answers the next that is due, where it came with the end. */
  private async delivered(
    claimed: Claimed,
    posted: Posted,
    told: readonly RowChange[],
    goesOn: boolean,
  ): Promise<Claimed | undefined> {
    if (claimed.state !== 'failing') return this.deliveries.delivered(claimed, posted, goesOn);
    await this.deliveries.recovered(claimed, posted, told);
    return undefined;
  }

  /** What is not recorded is posted once more when the lease is over; so a database that hiccups is asked again. */
  private async recorded<Result>(record: () => Promise<Result>): Promise<Result> {
    for (const pauseMs of recordPausesMs) {
      try {
        return await record();
      } catch (err) {
        if (this.stopping) throw err;
        this.watch.log.warn({ err, pauseMs }, 'the outcome of a webhook could not be recorded; it is tried again');
        await sleep(pauseMs);
      }
    }
    return record();
  }
}

/** How a try ended, and what follows. */
interface Ended {
  readonly posted: Posted;
  readonly verdict: Verdict;
  /** Claimed already, where this one was delivered and another of its configuration is due. */
  readonly next?: Claimed;
}

function setbackOf({ delivery, attempts }: Claimed, { posted, verdict }: Ended): Pick<Round, 'againMs' | 'flaw'> {
  const how = posted.error ?? `status_${posted.status}`;
  const next = verdict.kind === 'retry' ? `tried again in ${Math.ceil(verdict.inMs / 1_000)} s` : 'given up';
  const flaw = `${how}: delivery ${delivery}, attempt ${attempts}, ${Math.round(posted.durationMs)} ms; ${next}`;
  // A dead delivery makes way for the one behind it.
  const againMs = verdict.kind === 'retry' ? verdict.inMs : verdict.kind === 'dead' ? 0 : undefined;
  return { flaw, ...(againMs !== undefined && { againMs }) };
}
