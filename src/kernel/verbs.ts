import type { JsonObject } from './json.js';

/**
 * The acts that need permission, as Cedar knows them. `kind` says how an act is recorded: a `write` has one audit row
 * for each act; a `read` is counted, and audited only when it is denied.
 */
export const actions = {
  a2a_invoke: { kind: 'write', resource: 'Skill' },
  a2a_discover: { kind: 'read', resource: 'A2AAgent' },
  a2a_cancel: { kind: 'write', resource: 'Skill' },
  task_submit: { kind: 'write', resource: 'PublishedAgent' },
  task_read: { kind: 'read', resource: 'Task' },
  task_cancel: { kind: 'write', resource: 'Task' },
  task_subscribe: { kind: 'read', resource: 'Task' },
  push_configure: { kind: 'write', resource: 'Task' },
  mcp_call: { kind: 'write', resource: 'Tool' },
  mcp_read: { kind: 'read', resource: 'Resource' },
  mcp_prompt: { kind: 'read', resource: 'Prompt' },
  mcp_discover: { kind: 'read', resource: 'McpServer' },
  approval_decide: { kind: 'write', resource: 'Org' },
  admin_read: { kind: 'read', resource: 'Org' },
  admin_write: { kind: 'write', resource: 'Org' },
} as const;

export type Action = keyof typeof actions;
export type ResourceType = (typeof actions)[Action]['resource'];

/** A Cedar resource: its type and id, e.g. `Skill::"vercel_ops.deploy"`. */
export interface ResourceRef {
  readonly type: ResourceType;
  readonly id: string;
  /** The parent in the entity graph: the agent of a skill, the server of a tool. */
  readonly parent?: string;
}

/** The registered agent that an act calls. */
export interface TargetAgent {
  readonly id: string;
  readonly slug: string;
  readonly url: string;
  /** Price of one task in the agent's own unit, when its card states one. */
  readonly costPerTask?: number;
}

/** Facts that are stored about a dispatched call in addition to the call itself (RE-63). */
export interface DispatchFacts {
  /**
   * `explicit:<work type>` when the caller named the agent, `transparent:<work type>` when the gateway chose it
   * (RE-64).
   */
  readonly workType: string;
  /** The sent input, as JSON text that may be stored. */
  readonly input: string;
  /** True when a row with the id of the act already counts among the active calls of its agent. */
  readonly isPlaced: boolean;
}

/** Facts about an act for its approval. */
export interface Approvable {
  /** Everything that the act sends, when its arguments are only a part of it. An approval is bound to it. */
  readonly content?: JsonObject;
  /**
   * Whole URLs that get the result. An approval is bound to them; `content` has them without their queries, which may
   * contain credentials.
   */
  readonly receivers?: JsonObject;
  /** Tells what is called from something else that gets its name later. An approval is bound to it. */
  readonly target?: JsonObject;
  /**
   * Returns the addresses of what does the work, when it is registered under a name that may get others. An approval is
   * bound to them.
   */
  readonly behind?: () => Promise<JsonObject | undefined>;
  /** Returns true when the act repeats an earlier one under its idempotency key. Then it needs no approval. */
  readonly repeats?: () => Promise<boolean>;
  /** The same for all attempts of one act. An approval that one attempt used also permits the others, for a day. */
  readonly attemptKey?: string;
  /** Throws when no approval can permit the act. Runs before the question is asked and before an approval is used. */
  readonly check?: () => Promise<void> | void;
}

/** The approval that a decision needs. */
export interface NeededApproval {
  /** The approver must be in all of these groups. The name of a role is the group of its holders. */
  readonly groups: readonly string[];
  /** How long the question waits for an approver, and then how long the approval can be used. */
  readonly lifetimeMs: number;
}

export interface Decision {
  readonly allowed: boolean;
  /** Set when only a missing approval prevents the act. `allowed` is false then. */
  readonly needs?: NeededApproval;
  /** The approval that the act used. The approver was in all of its groups. */
  readonly approval?: { readonly id: string; readonly by: string; readonly groups: readonly string[] };
  /** The person who gave the answer that `reason` repeats (`callerOf`). */
  readonly by?: string;
  /** Names of the policies that decided; empty when no permit matched. */
  readonly policies: readonly string[];
  readonly reason: string;
  /** The action that removes the cause of a denial, when it is known. */
  readonly hint?: string;
  /** The version of the policy set that made the decision. */
  readonly version?: string;
}
