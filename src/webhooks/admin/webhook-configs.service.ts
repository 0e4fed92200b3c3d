import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid } from '../../kernel/ids.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import type { Tx } from '../../platform/database/tx.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { withoutQuery } from '../../platform/secrets/url-queries.js';
import { ConfigLogStore, type ConfigRow } from './config-log.store.js';
import type { ConfigKey } from '../delivery/delivery.store.js';
import { ownerSeenBy } from './own-tasks.js';
import { DeliveryTrigger } from '../delivery/delivery-trigger.js';
import { WebhookService } from '../webhook.service.js';
import type { ConfigQuery, ConfigView, NewConfig } from './webhook.types.js';

/**
 * Lists, creates, activates and deactivates push configurations (RI-45). An admin sees those of the org, other callers
 * see those of their own tasks.
 */
@Injectable()
export class WebhookConfigsService {
  constructor(
    private readonly acts: AdminActs,
    private readonly webhooks: WebhookService,
    private readonly configs: ConfigLogStore,
    private readonly trigger: DeliveryTrigger,
    private readonly cursors: Cursors,
  ) {}

  /** Lists configurations, newest first. Throws `denied`, `invalid_params` for a cursor of another list. */
  list(ctx: CallContext, { limit, cursor, ...query }: ConfigQuery): Promise<Page<ConfigView>> {
    return this.acts.read(ctx, 'webhook.configs', async () => {
      const filter = { ...query, owner: ownerSeenBy(ctx) };
      const scope = `configs:${ctx.org.id}:${JSON.stringify(filter)}`;
      const after = cursor === undefined ? undefined : this.cursors.decode(scope, cursor, 3);
      const rows = await this.configs.findPage(ctx.org.id, filter, limit, after);
      return pageOf(rows, limit, configView, (row) => this.cursors.encode(scope, [row.at, row.taskId, row.id]));
    });
  }

  /** Returns one configuration. Throws `not_found`, also for a task of another owner. */
  get(ctx: CallContext, key: ConfigKey): Promise<ConfigView> {
    return this.acts.read(ctx, 'webhook.config', async () => configView(await this.requireConfig(ctx, key)));
  }

  /**
   * Creates a configuration. A URL that the task already has is a `conflict` here, while the A2A doors replace the
   * configuration. Throws the errors of WebhookService.create.
   */
  async create(ctx: CallContext, given: NewConfig): Promise<ConfigView> {
    const { id } = await this.webhooks.add(ctx, given);
    return configView(await this.requireConfig(ctx, { taskId: given.taskId, configId: id }));
  }

  /**
   * Disables a configuration: nothing more is posted to it. Waiting deliveries become dead, and can be replayed when it
   * is active again. Throws `not_found`.
   */
  deactivate(ctx: CallContext, key: ConfigKey): Promise<ConfigView> {
    return this.switchState(ctx, 'webhook.deactivate', key, (tx) =>
      this.configs.deactivate(tx, ctx.org.id, key, 'deactivated'),
    );
  }

  /** Activates a configuration: events from now on are posted. Throws `not_found`. */
  activate(ctx: CallContext, key: ConfigKey): Promise<ConfigView> {
    return this.switchState(ctx, 'webhook.activate', key, async (tx) => {
      await this.configs.activate(tx, ctx.org.id, key);
      tx.afterCommit(() => this.trigger.rememberConfig(key));
    });
  }

  /** Switches a configuration; without effect when it is in that state already. */
  private async switchState(
    ctx: CallContext,
    verb: string,
    key: ConfigKey,
    work: (tx: Tx) => Promise<void>,
  ): Promise<ConfigView> {
    const known = () => this.requireConfig(ctx, key);
    await this.acts.prepareAndWrite(ctx, verb, { task: key.taskId, config: key.configId }, known, work);
    return configView(await known());
  }

  private async requireConfig(ctx: CallContext, key: ConfigKey): Promise<ConfigRow> {
    const row = isUuid(key.taskId) ? await this.configs.find(ctx.org.id, key, ownerSeenBy(ctx)) : undefined;
    if (!row) throw new RialtoError('not_found', { message: 'no such push configuration' });
    return row;
  }
}

function configView(row: ConfigRow): ConfigView {
  return {
    taskId: row.taskId,
    id: row.id,
    url: withoutQuery(row.url),
    format: row.format,
    state: row.state,
    reason: row.reason,
    failingSince: row.failingSince?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
  };
}
