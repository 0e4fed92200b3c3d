import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { newId } from '../../kernel/ids.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import { eventBody, mediaTypeOf, needsOnlyEvent, taskBody } from '../rendering/body.js';
import { requirePostable } from '../configs/postable.js';
import { WebhookPost } from '../delivery/webhook-post.js';
import { WebhookSecretStore } from '../configs/webhook-secret.store.js';
import type { TestWebhook, WebhookTestResult } from './webhook.types.js';

/**
 * Posts a test event without a task, in the same way as a real one, so that a receiver can be tested before it is used.
 */
@Injectable()
export class WebhookTestService {
  constructor(
    private readonly acts: AdminActs,
    private readonly secrets: WebhookSecretStore,
    private readonly post: WebhookPost,
    private readonly safeFetch: SafeFetch,
  ) {}

  /**
   * Makes one attempt; a failure of the receiver is a result, not an error. Throws `denied`, `url_not_allowed`,
   * `invalid_params`.
   */
  testReceiver(ctx: CallContext, { format, ...receiver }: TestWebhook): Promise<WebhookTestResult> {
    const work = async (): Promise<WebhookTestResult> => {
      requirePostable(this.safeFetch, receiver);
      const [id, taskId] = [newId(), newId()];
      const posted = await this.post.send({
        id,
        config: { ...receiver, id: 'test', taskId },
        secrets: await this.secrets.signing(ctx.org.id),
        mediaType: mediaTypeOf(format),
        body: testBody(format, taskId),
      });
      return {
        delivered: posted.error === undefined,
        id,
        status: posted.status ?? null,
        error: posted.error ?? null,
        detail: posted.detail ?? null,
        reply: posted.reply ?? null,
        durationMs: Math.round(posted.durationMs),
      };
    };
    const args = { host: new URL(receiver.url).host };
    return this.acts.prepareAndWrite(ctx, 'webhook.test', args, work, (_, result) => Promise.resolve(result));
  }
}

function testBody(format: PushFormat, taskId: string): string {
  const [contextId, metadata] = [newId(), { test: true }];
  const status = { state: 'TASK_STATE_WORKING', timestamp: new Date(systemClock.now()).toISOString() } as const;
  const event = { statusUpdate: { taskId, contextId, status, metadata } };
  if (needsOnlyEvent(format)) return eventBody(format, event);
  const task = { id: taskId, contextId, status, metadata };
  return taskBody(format, { event, seq: 1, task, stateBefore: 'TASK_STATE_SUBMITTED', agentName: 'test' })!;
}
