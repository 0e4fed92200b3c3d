import type { OrgTable } from './policy/org-data.types.js';

/**
 * Every table with rows of an org, listed once: rows are exported in this order, and deleted in this order with the
 * org. The configuration that an agent needs to work comes before the tasks that it worked on.
 */
export const orgTables: readonly OrgTable[] = [
  { table: 'org_domains', kind: 'org-domain' },
  { table: 'org_secrets', kind: 'org-secret', withheld: ['sealed'] },
  { table: 'api_keys', kind: 'api-key', withheld: ['secret_hash'] },
  { table: 'members', kind: 'member' },
  { table: 'revoked_tokens', kind: 'revoked-token' },
  {
    table: 'mcp_sessions',
    children: [
      { table: 'mcp_answers', column: 'session_id' },
      { table: 'mcp_subscriptions', column: 'session_id' },
    ],
  },
  { table: 'mcp_held_answers' },
  { table: 'tool_calls' },
  { table: 'org_messages' },
  { table: 'mcp_user_credentials', kind: 'user-credential', withheld: ['sealed'] },
  { table: 'mcp_servers', kind: 'mcp-server', withheld: ['secrets'], withoutQuery: ['url'] },
  { table: 'approvals', kind: 'approval', withheld: ['sealed'] },
  { table: 'policy_versions', kind: 'policy-version' },
  { table: 'policies', kind: 'policy' },
  { table: 'published_agents', kind: 'published-agent', withheld: ['executor_secret', 'executor_query'] },
  {
    table: 'agent_cards',
    kind: 'registered-agent',
    withheld: ['credential', 'card_query'],
    withoutQuery: ['card_url'],
    children: [{ table: 'agent_outcomes', column: 'agent_id', kind: 'agent-outcomes' }],
  },
  { table: 'agent_card_changes', kind: 'card-change' },
  { table: 'a2a_task_instances', kind: 'call' },
  { table: 'cost_events', kind: 'cost' },
  { table: 'webhook_secrets', kind: 'webhook-secret', withheld: ['sealed'] },
  { table: 'push_configs', kind: 'push-configuration', withheld: ['token', 'authentication'], withoutQuery: ['url'] },
  {
    table: 'webhook_deliveries',
    kind: 'delivery',
    children: [{ table: 'webhook_attempts', column: 'delivery_id', kind: 'attempt' }],
  },
  { table: 'a2a_idempotency_keys', kind: 'idempotency-key' },
  { table: 'remote_pushes' },
  { table: 'thread_answers', kind: 'thread-answer', withheld: ['token'], withoutQuery: ['url'] },
  { table: 'a2a_continuations', kind: 'continuation' },
  {
    table: 'a2a_tasks',
    kind: 'task',
    children: [
      { table: 'a2a_task_events', column: 'task_id', kind: 'task-event' },
      { table: 'a2a_task_reports', column: 'task_id' },
    ],
  },
  { table: 'audit_events', kind: 'audit-event', outlivesOrg: true },
  { table: 'audit_chain', kind: 'audit-link', outlivesOrg: true },
  { table: 'audit_checkpoints', kind: 'audit-checkpoint', outlivesOrg: true },
  { table: 'audit_anchors', outlivesOrg: true },
  { table: 'audit_timestamps', kind: 'audit-timestamp', outlivesOrg: true },
  { table: 'audit_pending', outlivesOrg: true },
  { table: 'audit_subject_keys', outlivesOrg: true, withheld: ['sealed'] },
];
