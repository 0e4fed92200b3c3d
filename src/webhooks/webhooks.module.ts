import { Module, type OnModuleInit } from '@nestjs/common';
import { AuditModule } from '../audit/audit.module.js';
import { EventSinks } from '../tasks/event-sinks.service.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { ConfigLogStore } from './config-log.store.js';
import { DeliveryLogService } from './delivery-log.service.js';
import { DeliveryLogStore } from './delivery-log.store.js';
import { DeliverySink } from './delivery.sink.js';
import { DeliveryStore } from './delivery.store.js';
import { DeliveryWatch } from './delivery-watch.js';
import { DeliveryWatchStore } from './delivery-watch.store.js';
import { DeliveryWatchSweeper } from './delivery-watch.sweeper.js';
import { GatedPost } from './gated-post.js';
import { PushConfigStore } from './push-config.store.js';
import { WebhookBell } from './webhook-bell.js';
import { WebhookDeliverProcessor } from './webhook-deliver.processor.js';
import { WebhookDeliverer } from './webhook-deliverer.js';
import { WebhookPost } from './webhook-post.js';
import { WebhookRetentionStore } from './webhook-retention.store.js';
import { WebhookRetentionSweeper } from './webhook-retention.sweeper.js';
import { WebhookSecretStore } from './webhook-secret.store.js';
import { WebhookSecretsService } from './webhook-secrets.service.js';
import { WebhookConfigsController } from './webhook-configs.controller.js';
import { WebhookConfigsService } from './webhook-configs.service.js';
import { WebhookController } from './webhook.controller.js';
import { WebhookService, WebhookSurroundings } from './webhook.service.js';
import { WebhookSweeper } from './webhook.sweeper.js';
import { WebhookTestService } from './webhook-test.service.js';
import { WebhookTokens } from './webhook-tokens.js';

/** Room 10: push notifications. */
@Module({
  imports: [AuditModule, TasksModule],
  controllers: [WebhookConfigsController, WebhookController],
  providers: [
    ConfigLogStore,
    DeliveryLogService,
    DeliveryLogStore,
    DeliverySink,
    DeliveryStore,
    DeliveryWatch,
    DeliveryWatchStore,
    DeliveryWatchSweeper,
    GatedPost,
    PushConfigStore,
    WebhookBell,
    WebhookConfigsService,
    WebhookDeliverer,
    WebhookDeliverProcessor,
    WebhookPost,
    WebhookRetentionStore,
    WebhookRetentionSweeper,
    WebhookSecretsService,
    WebhookSecretStore,
    WebhookService,
    WebhookSurroundings,
    WebhookSweeper,
    WebhookTestService,
    WebhookTokens,
  ],
  exports: [WebhookService],
})
export class WebhooksModule implements OnModuleInit {
  constructor(
    private readonly sinks: EventSinks,
    private readonly sink: DeliverySink,
  ) {}

  onModuleInit(): void {
    this.sinks.add(this.sink);
  }
}
