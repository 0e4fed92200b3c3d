import { Injectable } from '@nestjs/common';
import { TaskLogService } from '../../tasks/task-log.service.js';
import { PushConfigStore } from '../configs/push-config.store.js';
import { WebhookSecretStore } from '../configs/webhook-secret.store.js';
import { mediaTypeOf } from '../rendering/body.js';
import { Rendering } from '../rendering/rendering.js';
import type { Claimed } from './delivery.store.js';
import type { Post } from './webhook-post.js';

/** Builds the posts of claimed deliveries: opens the configuration and the signing secrets, and renders the body. */
@Injectable()
export class PostBuilder {
  constructor(
    private readonly configs: PushConfigStore,
    private readonly secrets: WebhookSecretStore,
    private readonly log: TaskLogService,
  ) {}

  renderingOf(taskId: string): Rendering {
    return new Rendering(this.log, taskId);
  }

  /** Builds a post; undefined when nothing is posted for the event. Throws when a secret cannot be opened. */
  async build(claimed: Claimed, rendering: Rendering): Promise<Post | undefined> {
    const { delivery: id, format, seq } = claimed;
    const config = this.configs.openConfig(claimed);
    const secrets = claimed.secrets.map((sealed) => this.secrets.openSecret(claimed.orgId, sealed));
    // The configuration may have been replaced while a lost process had the claim, and then the stored body may have
    // another format.
    const storedBody = claimed.isTakenOver ? null : claimed.body;
    const body = storedBody ?? (await rendering.renderBody(format, seq));
    return body === undefined ? undefined : { id, config, secrets, mediaType: mediaTypeOf(format), body };
  }
}
