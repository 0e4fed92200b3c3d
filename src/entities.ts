import {
  AuditAnchorEntity,
  AuditSubjectKeyEntity,
  AuditTimestampEntity,
  AuditChainEntity,
  AuditCheckpointEntity,
  AuditEventEntity,
  AuditPendingEntity,
  SigningKeyEntity,
} from './audit/audit-event.entity.js';
import { ApprovalEntity } from './approvals/storage/approval.entity.js';
import { McpAnswerEntity } from './mcp-bridge/sessions/mcp-answer.entity.js';
import { McpSubscriptionEntity } from './mcp-bridge/sessions/mcp-subscription.entity.js';
import { McpSessionEntity } from './mcp-bridge/sessions/mcp-session.entity.js';
import {
  ApiKeyEntity,
  MemberEntity,
  OrgDomainEntity,
  OrgEntity,
  OrgSecretEntity,
  RevokedTokenEntity,
} from './policy/orgs/org.entity.js';
import { PolicyEntity, PolicyVersionEntity } from './policy/admin/policy.entity.js';
import { AgentCardChangeEntity, AgentEntity } from './registry/agents/agent.entity.js';
import { PublishedAgentEntity } from './registry/published/published-agent.entity.js';
import { AgentOutcomesEntity, CostEventEntity, TaskInstanceEntity } from './registry/agents/agent-stats.entity.js';
import { ContinuationEntity } from './continuations/storage/continuation.entity.js';
import { ThreadAnswerEntity } from './continuations/threads/thread-answer.entity.js';
import { RemotePushEntity } from './continuations/push/remote-push.entity.js';
import { IdempotencyKeyEntity, TaskEntity, TaskEventEntity, TaskReportEntity } from './tasks/storage/task.entity.js';
import { OrgMessagesEntity } from './policy/trust/org-messages.entity.js';
import { ToolCallsEntity } from './policy/limits/tool-calls.entity.js';
import { SuspendedAnswerEntity } from './upstreams/suspended-calls/suspended-answer.entity.js';
import { McpServerEntity } from './upstreams/storage/mcp-server.entity.js';
import { UserCredentialEntity } from './upstreams/storage/user-credential.entity.js';
import { WebhookAttemptEntity, WebhookDeliveryEntity } from './webhooks/delivery/delivery.entity.js';
import { PushConfigEntity } from './webhooks/configs/push-config.entity.js';
import { WebhookSecretEntity } from './webhooks/configs/webhook-secret.entity.js';

/** Every entity class, listed once for the app and for the migration command. */
export const entities = [
  OrgEntity,
  OrgDomainEntity,
  OrgSecretEntity,
  MemberEntity,
  ApiKeyEntity,
  RevokedTokenEntity,
  PolicyEntity,
  PolicyVersionEntity,
  AuditEventEntity,
  AuditChainEntity,
  AuditPendingEntity,
  AuditCheckpointEntity,
  AuditAnchorEntity,
  AuditTimestampEntity,
  AuditSubjectKeyEntity,
  SigningKeyEntity,
  ApprovalEntity,
  AgentEntity,
  AgentCardChangeEntity,
  PublishedAgentEntity,
  AgentOutcomesEntity,
  TaskInstanceEntity,
  CostEventEntity,
  TaskEntity,
  TaskEventEntity,
  TaskReportEntity,
  IdempotencyKeyEntity,
  PushConfigEntity,
  WebhookDeliveryEntity,
  WebhookAttemptEntity,
  WebhookSecretEntity,
  ContinuationEntity,
  RemotePushEntity,
  ThreadAnswerEntity,
  McpServerEntity,
  UserCredentialEntity,
  McpAnswerEntity,
  SuspendedAnswerEntity,
  ToolCallsEntity,
  OrgMessagesEntity,
  McpSessionEntity,
  McpSubscriptionEntity,
];
