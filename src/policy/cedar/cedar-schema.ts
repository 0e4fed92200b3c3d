import { actions } from '../../kernel/verbs.js';

/** Every kind of caller, in the order of the page that documents the vocabulary. */
export const principalTypes = ['User', 'A2AAgent', 'Service', 'Anonymous'] as const;
export type PrincipalType = (typeof principalTypes)[number];

/** Every entity type that a policy can name. */
export const entityTypes = [
  ...principalTypes,
  ...['Group', 'Skill', 'McpServer', 'Tool', 'Resource', 'Prompt', 'PublishedAgent', 'Task', 'Org', 'Input'],
] as const;

const principals = principalTypes.join(', ');

const agentShape = '{ role: String, agentUrl: String, skills: Set<String>, trustLevel: String, quarantined: Bool }';

const entities = `
entity Group, McpServer, PublishedAgent, Org;
entity User, Service, Anonymous in [Group] { role: String };
entity A2AAgent in [Group] ${agentShape};
entity Skill in [A2AAgent] { agent: A2AAgent };
entity Tool in [McpServer] { quarantined: Bool };
entity Resource, Prompt in [McpServer];
// A task lies in the principal that owns it, so "mine" is: resource in principal.
entity Task in [${principals}] { agent: String, owner: String };
// The top-level scalar arguments of the call, each a tag; numbers and booleans as their JSON text.
entity Input tags String;

// approved: the claim approvedActions of the caller's token names this verb.
// An encrypted message shows its size in bytes and the tier of its sender's org; cleartext has size 0 and tier 0.
type Call = {
  surface: String, depth: Long, time: datetime, approved: Bool, input: Input,
  encrypted: Bool, encryptedBytes: Long, trustTier: Long
};
`.trim();

/**
 * The policy vocabulary in Cedar schema syntax (RE-74, RE-75): no namespace, one context type for all actions. The
 * actions come from the kernel's catalogue, so that a new verb is always included.
 */
export const cedarSchema = [
  entities,
  ...Object.entries(actions).map(
    ([action, { resource }]) =>
      `action ${action} appliesTo { principal: [${principals}], resource: [${resource}], context: Call };`,
  ),
  '',
].join('\n');
