import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import type { RowChange } from '../platform/database/row-writer.js';
import { Cursors } from '../platform/http/cursor.js';
import type { PushConfigPage } from '../protocol/a2a/dialect.js';
import { limits } from '../protocol/a2a/request/limits.js';
import type { RunWebhook } from '../protocol/a2a/run/run-view.js';
import type { PushConfig, PushFormat } from '../protocol/a2a/request/operations.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { TaskService } from '../tasks/task.service.js';
import type { StoredTask } from '../tasks/task.types.js';
import { ConfigAdmission } from './configs/config-admission.js';
import {
  maxConfigs,
  PushConfigStore,
  type Admission,
  type NewConfig,
  type Stored,
  type StoredConfig,
} from './configs/push-config.store.js';
import { DeliveryTrigger } from './delivery/delivery-trigger.js';

type Given = PushConfig & { readonly format: PushFormat };

/** Reyn's callers give one URL for each run, so a later one replaces it. */
const reynId = 'webhook_url';

/**
 * Manages the push configurations of tasks. Secrets: `create` returns them as they were given; `get` and `list` return
 * the token, because it only identifies the message to its receiver, and only the scheme of credentials.
 */
@Injectable()
export class WebhookService {
  constructor(
    private readonly tasks: TaskService,
    private readonly configs: PushConfigStore,
    private readonly trigger: DeliveryTrigger,
    private readonly cursors: Cursors,
    private readonly admission: ConfigAdmission,
  ) {}

  /**
   * Checks a configuration that is sent with a message, before its task exists. Throws the errors of ConfigAdmission,
   * and `denied`.
   */
  async checkConfig(ctx: CallContext, agent: PublishedAgent, config: PushConfig): Promise<void> {
    await this.admission.requireAdmissible(ctx.org.id, agent.id, config);
    await this.tasks.requireConfigurable(ctx, agent);
  }

  /** The rows of a configuration that is committed with its message. It gets the events after that message. */
  rowsOf({ org }: CallContext, taskId: string, config: Given): RowChange[] {
    const id = config.format === 'reyn' ? reynId : (config.id ?? freshId(config.format, taskId));
    this.trigger.rememberConfig({ taskId, configId: id });
    return [this.configs.rowOf({ ...config, id, taskId, org: org.id })];
  }

  /**
   * Adds a configuration, or replaces the one with this id. Throws `task_not_found`, `denied`, `invalid_params`,
   * `url_not_allowed`, `rate_limited`.
   */
  async create(
    ctx: CallContext,
    agent: PublishedAgent | undefined,
    given: Given & { readonly taskId: string },
  ): Promise<PushConfig> {
    const task = await this.tasks.visible(ctx, agent, given.taskId);
    const { format, id = freshId(format, task.id), ...shown } = given;
    return this.store(ctx, task, { ...shown, id, format }, (config, admit) => this.configs.put(config, admit));
  }

  /**
   * Adds a configuration under a new id. Throws the errors of `create`, and `conflict` when the task already has one
   * with this URL.
   */
  async add(ctx: CallContext, given: Given & { readonly taskId: string }): Promise<StoredConfig> {
    const task = await this.tasks.visible(ctx, undefined, given.taskId);
    return this.store(ctx, task, { ...given, id: newId() }, (config, admit) => this.configs.add(config, admit));
  }

  private async store(
    ctx: CallContext,
    task: StoredTask,
    { format, ...given }: Given & { readonly id: string },
    write: (config: NewConfig, admit: Admission) => Promise<Stored>,
  ): Promise<StoredConfig> {
    await this.admission.requireAdmissible(task.orgId, task.agentId, given);
    const config = { ...given, taskId: task.id };
    const args = { configId: given.id, host: new URL(given.url).host };
    const store = async () => {
      const stored = await write({ ...config, format, org: task.orgId }, (tx) =>
        this.admission.requireQuota(task.orgId, task.agentId, given, tx),
      );
      if (stored === 'duplicate')
        throw new RialtoError('conflict', { message: 'the task already has a push configuration with this URL' });
      if (stored === 'full')
        throw new RialtoError('invalid_params', { message: `a task has at most ${maxConfigs} push configurations` });
      this.trigger.rememberConfig({ taskId: task.id, configId: given.id });
      return config;
    };
    return this.tasks.act(ctx, 'push_configure', task, store, args);
  }

  /**
   * Returns a configuration; without an id the unnamed one, else the oldest. Throws `task_not_found`, also for an
   * unknown configuration (v1.0 section 3.1.8).
   */
  async get(
    ctx: CallContext,
    agent: PublishedAgent | undefined,
    { taskId, id }: { taskId: string; id?: string },
  ): Promise<PushConfig> {
    const task = await this.tasks.visible(ctx, agent, taskId);
    return this.tasks.act(ctx, 'task_read', task, async () => {
      const config = await this.configs.find(task.id, id);
      if (config) return shownOf(config);
      throw new RialtoError('task_not_found', { message: 'the task has no such push configuration' });
    });
  }

  /** State of the webhook of a run, without a check of permissions; undefined when the run has none. */
  async ofRun(taskId: string): Promise<RunWebhook | undefined> {
    const known = await this.configs.stateOf(taskId, reynId);
    return known && { state: known.state, ...(known.reason !== null && { reason: known.reason }) };
  }

  /** Lists configurations, oldest first. */
  async list(
    ctx: CallContext,
    agent: PublishedAgent | undefined,
    { taskId, pageSize = limits.defaultPageSize, pageToken }: { taskId: string; pageSize?: number; pageToken?: string },
  ): Promise<PushConfigPage> {
    const task = await this.tasks.visible(ctx, agent, taskId);
    const scope = `push-configs:${task.orgId}:${task.id}`;
    return this.tasks.act(ctx, 'task_read', task, async () => {
      const after = pageToken ? this.cursors.decode(scope, pageToken, 2) : undefined;
      const rows = await this.configs.findPage(task.id, pageSize, after);
      const shown = rows.slice(0, pageSize);
      const last = shown.at(-1);
      const more = rows.length > pageSize && last;
      return {
        configs: shown.map(({ config }) => shownOf(config)),
        nextPageToken: more ? this.cursors.encode(scope, [last.at, last.config.id]) : '',
      };
    });
  }

  /**
   * Deletes a configuration; without an id as `get`. Waiting deliveries are skipped. Succeeds also when the
   * configuration does not exist.
   */
  async delete(
    ctx: CallContext,
    agent: PublishedAgent | undefined,
    { taskId, id }: { taskId: string; id?: string },
  ): Promise<undefined> {
    const task = await this.tasks.visible(ctx, agent, taskId);
    await this.tasks.act(ctx, 'push_configure', task, () => this.configs.remove(task.id, id));
    if (id !== undefined) this.trigger.forgetConfig({ taskId: task.id, configId: id });
    return undefined;
  }
}

/**
 * The id for a configuration without one. The older versions have one configuration for a task, which the next one
 * without an id replaces.
 */
function freshId(format: PushFormat, taskId: string): string {
  return format === 'v1' ? newId() : taskId;
}

function shownOf({ authentication, ...config }: StoredConfig): PushConfig {
  return { ...config, ...(authentication && { authentication: { scheme: authentication.scheme } }) };
}
