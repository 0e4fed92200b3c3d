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
