import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid } from '../../kernel/ids.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { withoutQuery } from '../../platform/secrets/url-queries.js';
import { DeliveryLogStore, type DeliveryRow } from './delivery-log.store.js';
import { ownerSeenBy } from './own-tasks.js';
import { maxAttempts } from '../delivery/retry-plan.js';
import { jobKeyOf, DeliveryTrigger } from '../delivery/delivery-trigger.js';
import {
  DeliveryState,
  type DeliveryDetail,
  type DeliveryQuery,
  type DeliverySummary,
  type DeliveryView,
  type Replayed,
  type ReplayDeliveries,
  type SummaryQuery,
} from './webhook.types.js';

const dayMs = 86_400_000;
const maxReplayed = 1_000;

/**
 * Lists, shows, redelivers and replays deliveries: an admin sees those of the org, other callers see those of their own
 * tasks.
 */
@Injectable()
export class DeliveryLogService {
  constructor(
    private readonly acts: AdminActs,
    private readonly deliveries: DeliveryLogStore,
    private readonly trigger: DeliveryTrigger,
    private readonly cursors: Cursors,
  ) {}

  /** Lists deliveries, newest first. Throws `denied`, `invalid_params` for a cursor of another list. */
  list(ctx: CallContext, { limit, cursor, ...query }: DeliveryQuery): Promise<Page<DeliveryView>> {
    return this.acts.read(ctx, 'webhook.deliveries', async () => {
      const filter = { ...query, owner: ownerSeenBy(ctx) };
      const scope = `deliveries:${ctx.org.id}:${JSON.stringify(filter)}`;
      const after = cursor === undefined ? undefined : this.cursors.decode(scope, cursor, 3);
      const rows = await this.deliveries.findPage(ctx.org.id, filter, limit, after);
      return pageOf(rows, limit, deliveryView, (row) => this.cursors.encode(scope, [row.at, String(row.seq), row.id]));
    });
  }

  /** Returns one delivery with its attempts. Throws `not_found`, also for a task of another owner. */
  get(ctx: CallContext, id: string): Promise<DeliveryDetail> {
    return this.acts.read(ctx, 'webhook.delivery', async () => {
      const row = await this.requireDelivery(ctx, id);
      const tries = (await this.deliveries.attempts(row.id)).map(({ endedAt, durationMs, ...attempt }) => ({
        ...attempt,
        endedAt: endedAt.toISOString(),
        durationMs,
      }));
      return { ...deliveryView(row), body: row.body, tries };
    });
  }

  /** Counts deliveries by state, for the last day unless a range is given. */
  summary(ctx: CallContext, { from, to }: SummaryQuery): Promise<DeliverySummary> {
    return this.acts.read(ctx, 'webhook.summary', async () => {
      const since = from ?? new Date(systemClock.now() - dayMs).toISOString();
      const counted = await this.deliveries.counts(ctx.org.id, { from: since, to, owner: ownerSeenBy(ctx) });
      const found = new Map(counted.map(({ state, count }) => [state, count]));
      const counts = Object.fromEntries(DeliveryState.options.map((state) => [state, found.get(state) ?? 0]));
      return { from: since, to: to ?? null, counts: counts as DeliverySummary['counts'] };
    });
  }

  /**
   * Posts a delivery again under the same `webhook-id`, with the full retry schedule. Throws `not_found`, `conflict`.
   */
  async redeliver(ctx: CallContext, id: string): Promise<DeliveryView> {
    const known = () => this.requireDelivery(ctx, id);
    await this.acts.prepareAndWrite(ctx, 'webhook.redeliver', { delivery: id }, known, async (tx, row) => {
      const key = await this.deliveries.redeliver(tx, ctx.org.id, row.id);
      if (!key) throw new RialtoError('conflict', { message: redeliverRefusal(row) });
      tx.afterCommit(() => void this.trigger.enqueue(key));
    });
    return deliveryView(await known());
  }

  /**
   * Replays matching deliveries, oldest first, at most a thousand at once. A replayed delivery may match again, so the
   * cursor is the way to the next ones. Throws `denied`, `invalid_params` for a cursor of another replay.
   */
  replay(ctx: CallContext, { cursor, ...filter }: ReplayDeliveries): Promise<Replayed> {
    const scope = `replay:${ctx.org.id}:${JSON.stringify(filter)}`;
    return this.acts.write(ctx, 'webhook.replay', { ...filter }, async (tx) => {
      const after = cursor === undefined ? undefined : this.cursors.decode(scope, cursor, 3);
      const begun = await this.deliveries.replay(tx, ctx.org.id, filter, maxReplayed, after);
      const configs = new Map(begun.map((key) => [jobKeyOf(key), key]));
      tx.afterCommit(() => configs.forEach(({ taskId, configId }) => this.trigger.enqueueDue({ taskId, configId })));
      const last = begun.length === maxReplayed ? begun.at(-1) : undefined;
      return { replayed: begun.length, nextCursor: last ? this.cursors.encode(scope, last.place) : null };
    });
  }

  private async requireDelivery(ctx: CallContext, id: string): Promise<DeliveryRow> {
    const row = isUuid(id) ? await this.deliveries.find(ctx.org.id, id, ownerSeenBy(ctx)) : undefined;
    if (!row) throw new RialtoError('not_found', { message: 'no such delivery' });
    return row;
  }
}

const planned = new Set<DeliveryState>(['pending', 'failed']);

function deliveryView(row: DeliveryRow): DeliveryView {
  return {
    id: row.id,
    taskId: row.taskId,
    configId: row.configId,
    event: row.seq,
    state: row.state,
    url: row.url && withoutQuery(row.url),
    configState: row.configState,
    configReason: row.configReason,
    attempts: row.attempts,
    maxAttempts: row.format && row.earlierAttempts + maxAttempts(row.format),
    nextAttemptAt: planned.has(row.state) ? row.nextAt.toISOString() : null,
    lastStatus: row.lastStatus,
    lastError: row.lastError,
    createdAt: row.createdAt.toISOString(),
    endedAt: row.endedAt?.toISOString() ?? null,
  };
}

function redeliverRefusal({ state, configState, taskId, configId: id }: DeliveryRow): string {
  if (configState === null) return 'the push configuration of this delivery is deleted, so it cannot be posted again';
  if (configState === 'disabled') {
    const config = `${taskId}/${encodeURIComponent(id)}`;
    return `the push configuration of this delivery is disabled: POST /api/webhooks/configs/${config}/activate first`;
  }
  if (state === 'processing') return 'this delivery is being posted now';
  return 'this delivery is due, or waits for an earlier delivery of its task: redeliver that one';
}
