import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid } from '../../kernel/ids.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import type { Page } from '../../platform/http/cursor.js';
import type { WebhookSecretEntity } from '../configs/webhook-secret.entity.js';
import { WebhookSecretStore } from '../configs/webhook-secret.store.js';
import type { MakeSecret, NewWebhookSecretView, WebhookSecretView } from './webhook.types.js';

/** Creates, lists and ends the signing secrets of an org's webhooks. A list shows only their last characters. */
@Injectable()
export class WebhookSecretsService {
  constructor(
    private readonly acts: AdminActs,
    private readonly secrets: WebhookSecretStore,
  ) {}

  /** Creates a secret. Its answer is the only one that contains the plain secret. Throws `denied`. */
  create(ctx: CallContext, { graceSeconds }: MakeSecret): Promise<NewWebhookSecretView> {
    return this.acts.write(ctx, 'webhook.make_secret', { graceSeconds }, async (tx) => {
      const { row, secret } = await this.secrets.create(tx, ctx.org.id, graceSeconds);
      return { ...secretView(row), secret };
    });
  }

  /** Lists the active secrets, newest first. */
  list(ctx: CallContext): Promise<Page<WebhookSecretView>> {
    return this.acts.read(ctx, 'webhook.secrets', async () => ({
      items: (await this.secrets.list(ctx.org.id)).map(secretView),
      nextCursor: null,
    }));
  }

  /** Ends a secret at once. Throws `not_found`. */
  endNow(ctx: CallContext, id: string): Promise<void> {
    return this.acts.write(ctx, 'webhook.end_secret', { secret: id }, async (tx) => {
      if (!isUuid(id) || !(await this.secrets.endNow(tx, ctx.org.id, id)))
        throw new RialtoError('not_found', { message: 'no such secret' });
    });
  }
}

function secretView({
  id,
  hint,
  createdAt,
  endsAt,
}: Pick<WebhookSecretEntity, 'id' | 'hint' | 'createdAt' | 'endsAt'>): WebhookSecretView {
  return { id, hint, createdAt: createdAt.toISOString(), endsAt: endsAt?.toISOString() ?? null };
}
