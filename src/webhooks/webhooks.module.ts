import { Module, type OnModuleInit } from '@nestjs/common';
import { AuditModule } from '../audit/audit.module.js';
import { PolicyModule } from '../policy/policy.module.js';
import { EventSinks } from '../tasks/event-sinks.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { ConfigLogStore } from './admin/config-log.store.js';
import { DeliveryLogService } from './admin/delivery-log.service.js';
import { DeliveryLogStore } from './admin/delivery-log.store.js';
import { DeliverySink } from './delivery/delivery.sink.js';
import { DeliveryOutcomeStore } from './delivery/delivery-outcome.store.js';
import { DeliveryStore } from './delivery/delivery.store.js';
import { DeliveryWatch } from './delivery/delivery-watch.js';
import { DeliveryWatchStore } from './delivery/delivery-watch.store.js';
import { DeliveryWatchSweeper } from './delivery/delivery-watch.sweeper.js';
import { AdmittedPost } from './delivery/admitted-post.js';
import { PostBuilder } from './delivery/post-builder.js';
import { ConfigAdmission } from './configs/config-admission.js';
import { PushConfigStore } from './configs/push-config.store.js';
import { DeliveryTrigger } from './delivery/delivery-trigger.js';
import { WebhookDeliverProcessor } from './delivery/webhook-deliver.processor.js';
import { WebhookDeliverer } from './delivery/webhook-deliverer.js';
import { WebhookPost } from './delivery/webhook-post.js';
import { WebhookRetentionStore } from './retention/webhook-retention.store.js';
import { WebhookRetentionSweeper } from './retention/webhook-retention.sweeper.js';
import { WebhookSecretStore } from './configs/webhook-secret.store.js';
import { WebhookSecretsService } from './admin/webhook-secrets.service.js';
import { WebhookConfigsController } from './admin/webhook-configs.controller.js';
import { WebhookConfigsService } from './admin/webhook-configs.service.js';
import { WebhookController } from './admin/webhook.controller.js';
import { WebhookService } from './webhook.service.js';
import { WebhookSweeper } from './delivery/webhook.sweeper.js';
import { WebhookTestService } from './admin/webhook-test.service.js';
import { WebhookTokens } from './configs/webhook-tokens.js';

/** Push notifications: configurations of tasks, and deliveries to their receivers. */
@Module({
  imports: [AuditModule, PolicyModule, TasksModule],
  controllers: [WebhookConfigsController, WebhookController],
  providers: [
    ConfigLogStore,
    DeliveryLogService,
    DeliveryLogStore,
    DeliverySink,
    DeliveryOutcomeStore,
    DeliveryStore,
    DeliveryWatch,
    DeliveryWatchStore,
    DeliveryWatchSweeper,
    AdmittedPost,
    PushConfigStore,
    ConfigAdmission,
    DeliveryTrigger,
    PostBuilder,
    WebhookConfigsService,
    WebhookDeliverer,
    WebhookDeliverProcessor,
    WebhookPost,
    WebhookRetentionStore,
    WebhookRetentionSweeper,
    WebhookSecretsService,
    WebhookSecretStore,
    WebhookService,
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
