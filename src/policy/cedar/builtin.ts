import type { Action } from '../../kernel/verbs.js';
import { changedToolsWait } from '../policy.types.js';

/** A policy row for the engine: a name for people and a text with one or more policies. */
export interface PolicyText {
  readonly name: string;
  readonly text: string;
}

/** Prefix of the names of the gateway's policies. No row and no `@id` may use it. */
export const reservedPrefix = 'rialto:';

const changedCardsWait = 'rialto:changed-cards-wait';

/** Hints for denials that one guard alone decided, by the name of the guard. */
export const builtinHints: ReadonlyMap<string, string> = new Map([
  [
    changedCardsWait,
    'the card of the agent changed: GET /api/a2a/agents/{slug} shows it with `quarantine.cardHash`, ' +
      'and an admin approves it with POST /api/a2a/agents/{slug}/approve {"cardHash": "…"}',
  ],
]);

// Listed here and not derived from the catalogue's kinds, because `mcp_prompt` is a read there and viewers may not
// use it.
const viewerActions = [
  'a2a_discover',
  'mcp_discover',
  'mcp_read',
  'task_read',
  'task_subscribe',
  'admin_read',
] as const;
const readActions = (viewerActions satisfies readonly Action[]).map((action) => `Action::"${action}"`).join(', ');

/**
 * Guards that are part of every set and cannot be edited: viewers only read; only admins administer; agents with an
 * unapproved card and tools with an unapproved definition are not called; every member of an org may read its
 * administration.
 */
export const builtinPolicies: readonly PolicyText[] = [
  {
    name: 'rialto:viewers-only-read',
    text: `forbid(principal in Group::"viewer", action, resource) unless { action in [${readActions}] };`,
  },
  {
    name: 'rialto:only-admins-write',
    text: 'forbid(principal, action == Action::"admin_write", resource) unless { principal in Group::"admin" };',
  },
  {
    name: changedCardsWait,
    text: 'forbid(principal, action == Action::"a2a_invoke", resource) when { resource.agent.quarantined };',
  },
  {
    name: changedToolsWait,
    text: 'forbid(principal, action == Action::"mcp_call", resource) when { resource.quarantined };',
  },
  {
    // The service of the approvals checks that the caller is in the groups that the asking policy names.
    name: 'rialto:approvers-decide',
    text: 'permit(principal, action == Action::"approval_decide", resource is Org);',
  },
  {
    name: 'rialto:admins-administer',
    text:
      'permit(principal in Group::"admin", action in [Action::"admin_read", Action::"admin_write"], ' +
      'resource is Org);',
  },
  {
    name: 'rialto:admins-see-agents',
    text: 'permit(principal in Group::"admin", action in [Action::"a2a_discover", Action::"mcp_discover"], resource);',
  },
  {
    name: 'rialto:members-read',
    text: 'permit(principal in Group::"member", action == Action::"admin_read", resource is Org);',
  },
  {
    name: 'rialto:viewers-read',
    text: 'permit(principal in Group::"viewer", action == Action::"admin_read", resource is Org);',
  },
];

/**
 * The only policy of a new development org, visible and editable: everyone may do everything except administration.
 */
export const developmentPolicy: PolicyText = {
  name: 'development-default',
  text: `permit(principal, action, resource)
unless { action in [Action::"admin_read", Action::"admin_write"] };
`,
};
