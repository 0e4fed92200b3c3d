import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { mediaTypeOf } from './body.js';
import { DeliveryStore, type Claimed, type ConfigKey } from './delivery.store.js';
import { PushConfigStore } from './push-config.store.js';
import { Rendering } from './rendering.js';
import { verdictOf, type Verdict } from './retry-plan.js';
import { TaskLogService } from '../tasks/task-log.service.js';
import { WebhookSecretStore } from './webhook-secret.store.js';
import { WebhookPost, type Posted } from './webhook-post.js';

/** Deliveries of one configuration in a row; then others have their turn. */
const maxInARow = 200;

/** Before the outcome of a post is recorded again. */
const recordPausesMs = [100, 500, 2_000];

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
    private readonly post: WebhookPost,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** In how many milliseconds there is something to do again; undefined when nobody knows. May run twice at once. */
  run(key: ConfigKey): Promise<number | undefined> {
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

  private async deliverAll(key: ConfigKey): Promise<number | undefined> {
    const rendering = new Rendering(this.log, key.taskId);
    for (let count = 0; count < maxInARow; count++) {
      const claimed = this.stopping ? undefined : await this.deliveries.claim(key);
      if (!claimed) return undefined;
      const waitMs = await this.deliver(claimed, rendering);
      if (waitMs !== undefined) return waitMs;
    }
    return 0;
  }

  private async deliver(claimed: Claimed, rendering: Rendering): Promise<number | undefined> {
    if (claimed.state === null || claimed.state === 'disabled') {
      await this.deliveries.skip(claimed, 2_147_483_647);
      return undefined;
    }
    const posted = await this.tryOnce(claimed, rendering).catch((err: unknown): Posted => {
      // What cannot be put into words or opened is a failed try, so that it holds back later events no longer than one.
      const { task_id: taskId, delivery } = claimed;
      this.logger.warn({ err, taskId, delivery }, 'a webhook could not be prepared');
      return { durationMs: 0, error: RialtoError.from(err).code };
    });
    return posted && this.settle(claimed, posted);
  }

  /** Undefined when nothing is to be posted, or somebody else took over. */
  private async tryOnce(claimed: Claimed, rendering: Rendering): Promise<Posted | undefined> {
    const { delivery: id, format, seq } = claimed;
    const config = this.configs.open(claimed);
    const secrets = claimed.secrets.map((sealed) => this.secrets.open(claimed.org_id, sealed));
    const body = claimed.body ?? (await rendering.bodyOf(format, seq));
    if (body === undefined) await this.deliveries.skip(claimed, seq);
    else if (claimed.body !== null || (await this.deliveries.keepBody(claimed, body)))
      return this.post.send({ id, config, secrets, mediaType: mediaTypeOf(format), body });
    return undefined;
  }

  private async settle(claimed: Claimed, posted: Posted): Promise<number | undefined> {
    const verdict = verdictOf(claimed.format, claimed.attempts - claimed.earlier_attempts, posted, {
      now: systemClock.now(),
      chance: Math.random(),
    });
    if (verdict.kind === 'delivered') {
      await this.recorded(() => this.deliveries.delivered(claimed, posted));
      return undefined;
    }
    await this.recorded(() => this.deliveries.failed(claimed, posted, verdict));
    this.report(claimed, posted, verdict);
    return verdict.kind === 'retry' ? verdict.inMs : undefined;
  }

  /** What is not recorded is posted once more when the lease is over; so a database that hiccups is asked again. */
  private async recorded(record: () => Promise<void>): Promise<void> {
    for (const pauseMs of recordPausesMs) {
      try {
        return await record();
      } catch (err) {
        this.logger.warn({ err, pauseMs }, 'the outcome of a webhook could not be recorded; it is tried again');
        await sleep(pauseMs);
      }
    }
    return record();
  }

  private report({ task_id: taskId, delivery, attempts }: Claimed, { status, error }: Posted, verdict: Verdict): void {
    const facts = { taskId, delivery, attempt: attempts, status, error, ...verdict };
    if (verdict.kind === 'retry') this.logger.info(facts, 'a webhook was not taken; it is tried again');
    else this.logger.warn(facts, 'a webhook was given up');
  }
}
