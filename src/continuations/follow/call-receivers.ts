import { Injectable } from '@nestjs/common';
import type { SkillCall } from '../../a2a-client/remote-call.types.js';
import type { CallContext } from '../../kernel/call-context.js';
import type { TaskId } from '../../kernel/ids.js';
import type { RowChange } from '../../platform/database/row-writer.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { WebhookService } from '../../webhooks/webhook.service.js';
import { ThreadAnswerStore } from '../threads/thread-answer.store.js';

type Receivers = Pick<SkillCall, 'webhookUrl' | 'thread'>;

/** The webhook and the conversation thread that a call names: they are notified of its task, beside the caller. */
@Injectable()
export class CallReceivers {
  constructor(
    private readonly webhooks: WebhookService,
    private readonly threads: ThreadAnswerStore,
  ) {}

  /** Throws `url_not_allowed`, `invalid_params` or `denied` when the gateway may not post to a receiver. */
  async requirePostable(ctx: CallContext, agent: PublishedAgent, { webhookUrl, thread }: Receivers): Promise<void> {
    if (webhookUrl !== undefined) await this.webhooks.checkConfig(ctx, agent, { url: webhookUrl });
    if (thread) await this.webhooks.checkConfig(ctx, agent, { url: thread.url, token: thread.token });
  }

  /** Rows of the receivers, for the commit of the task. */
  rows(ctx: CallContext, taskId: TaskId, { webhookUrl: url, thread }: Receivers): RowChange[] {
    return [
      ...(url === undefined ? [] : this.webhooks.rowsOf(ctx, taskId, { url, format: 'reyn' })),
      ...(thread ? [this.threads.holding(ctx.org.id, taskId, thread)] : []),
    ];
  }
}
