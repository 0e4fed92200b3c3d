import type { Context, EntityJson, TypeAndId } from '@cedar-policy/cedar-wasm/nodejs';
import { groupsOf, type Principal, type Surface } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import { cleartextFacts, type MessageFacts } from '../../kernel/trust.js';
import type { Action, ResourceRef } from '../../kernel/verbs.js';
import type { PrincipalType } from './cedar-schema.js';
import { includes, type Names } from './context-reads.js';

/**
 * Facts of the registry about an agent. `version` changes with the facts and represents them in the decision cache.
 */
export interface AgentFacts {
  readonly url?: string;
  readonly skills?: readonly string[];
  readonly trustLevel?: string;
  /** True when the card changed and the change is not approved. */
  readonly quarantined?: boolean;
  readonly version?: string;
}

/** Facts about a tool of an MCP server. */
export interface ToolFacts {
  /** True when the definition of the tool differs from the approved one. */
  readonly quarantined: boolean;
}

/** Facts from the row of a task. `version` has the same meaning as in `AgentFacts`. */
export interface TaskFacts {
  /** Name of the published agent that works on the task. */
  readonly agent?: string;
  readonly owner?: Pick<Principal, 'kind' | 'id'>;
  readonly version?: string;
}

/** One question to the policies, in the terms of the kernel. */
export interface PolicyCall {
  readonly principal: Principal;
  /** Facts of the calling agent. Undefined: an untrusted agent. */
  readonly caller?: AgentFacts;
  readonly action: Action;
  readonly resource: ResourceRef;
  /** Facts of the agent that is the resource, or that has the skill. */
  readonly agent?: AgentFacts;
  /** Facts of the tool that is the resource; undefined for an unknown tool name. */
  readonly tool?: ToolFacts;
  readonly task?: TaskFacts;
  readonly surface: Surface;
  readonly depth: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly args?: JsonObject;
  /** True when the verified token of the caller says that a person approved this verb. */
  readonly approved?: boolean;
  /** Undefined: no encrypted message. */
  readonly message?: MessageFacts;
}

export const inputLimits = { tags: 256, bytes: 8_192 } as const;

const typeOfKind = {
  user: 'User',
  agent: 'A2AAgent',
  service: 'Service',
  anonymous: 'Anonymous',
} as const satisfies Record<Principal['kind'], PrincipalType>;

/** Returns the Cedar id of a caller, e.g. `User::"bob"`. */
export function principalUid({ kind, id }: Pick<Principal, 'kind' | 'id'>): TypeAndId {
  return { type: typeOfKind[kind], id };
}

/**
 * Returns the caller as an entity, with the parent `Group::"<g>"` for its role and each of its groups. A group with
 * the name of a role is ignored: only the role itself makes a caller a member of `Group::"admin"`.
 */
export function principalEntity(principal: Principal, facts?: AgentFacts): EntityJson {
  const parents = [...new Set(groupsOf(principal))].map((id) => ({ type: 'Group', id }));
  const attrs = { role: principal.role, ...(principal.kind === 'agent' && agentAttributes(facts)) };
  return { uid: principalUid(principal), attrs, parents };
}

/** Returns the resource and its parent as entities with all attributes (reliability: no attribute may be absent). */
function resourceEntities({ resource, agent, tool, task }: PolicyCall): EntityJson[] {
  const uid = { type: resource.type, id: resource.id };
  const parent = parentOf(resource);
  switch (resource.type) {
    case 'A2AAgent':
      return [agentEntity(resource.id, agent)];
    case 'Skill': {
      const owner = { type: 'A2AAgent', id: parent };
      return [{ uid, attrs: { agent: { __entity: owner } }, parents: [owner] }, agentEntity(parent, agent)];
    }
    case 'Tool':
    case 'Resource':
    case 'Prompt': {
      const attrs: EntityJson['attrs'] = resource.type === 'Tool' ? { quarantined: tool?.quarantined ?? false } : {};
      return [{ uid, attrs, parents: parent === '' ? [] : [{ type: 'McpServer', id: parent }] }];
    }
    case 'Task': {
      const attrs = { agent: task?.agent ?? '', owner: task?.owner?.id ?? '' };
      return [{ uid, attrs, parents: task?.owner ? [principalUid(task.owner)] : [] }];
    }
    case 'PublishedAgent':
    case 'McpServer':
    case 'Org':
      return [{ uid, attrs: {}, parents: [] }];
  }
}

/** Returns the entities of one call: caller and resource. An agent that calls itself is one entity. */
export function entitiesOf(call: PolicyCall): EntityJson[] {
  const self = principalUid(call.principal);
  const resources = resourceEntities(call);
  const others = resources.filter(({ uid }) => !('type' in uid && uid.type === self.type && uid.id === self.id));
  const callsItself = others.length < resources.length;
  return [principalEntity(call.principal, call.caller ?? (callsItself ? call.agent : undefined)), ...others];
}

/** Returns the parent of a resource: the given one, else from the form of its id (`agent.skill`, `server__tool`). */
export function parentOf({ type, id, parent }: ResourceRef): string {
  if (parent !== undefined) return parent;
  const separator = type === 'Skill' ? '.' : '__';
  return type === 'Resource' || !id.includes(separator) ? '' : id.slice(0, id.indexOf(separator));
}

/**
 * The arguments that policies read, as tags. `unreadable` names those that are too long or too many for a policy to
 * read.
 */
export interface InputTags {
  readonly tags: Readonly<Record<string, string>>;
  readonly unreadable: readonly string[];
}

/**
 * Returns a string tag for each top-level scalar argument that is read: numbers and booleans as JSON text; null,
 * objects and arrays are ignored. Arguments beyond the limits, and those with several values, are reported, not
 * dropped: padding must not hide an argument from a forbid.
 */
export function inputTags({ args = {}, message }: Pick<PolicyCall, 'args' | 'message'>, read: Names): InputTags {
  const found: [string, string][] = [];
  const unreadable = (message?.unclear ?? []).filter((name) => includes(read, name));
  for (const name of read === 'all' ? Object.keys(args) : read) {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    if (value === undefined || typeof value === 'object') continue;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const fits = found.length < inputLimits.tags && Buffer.byteLength(text) <= inputLimits.bytes;
    if (fits) found.push([name, text]);
    else unreadable.push(name);
  }
  return { tags: Object.fromEntries(found), unreadable };
}

const inputUid = { type: 'Input', id: 'input' } as const;

/** Returns the `Input` entity that `context.input` refers to. */
export function inputEntity(tags: Readonly<Record<string, string>>): EntityJson {
  return { uid: inputUid, attrs: {}, parents: [], tags: { ...tags } };
}

/** Returns the context of D13, only with the attributes that are read. */
export function contextOf(call: PolicyCall, read: Names = 'all'): Context {
  return {
    ...messageContext(call, read),
    ...(includes(read, 'surface') && { surface: call.surface }),
    ...(includes(read, 'depth') && { depth: call.depth }),
    ...(includes(read, 'time') && { time: { __extn: { fn: 'datetime', arg: new Date(call.time).toISOString() } } }),
    ...(includes(read, 'approved') && { approved: call.approved ?? false }),
    ...(includes(read, 'input') && { input: { __entity: { ...inputUid } } }),
  };
}

/** Returns the facts about the message of a call that are read. */
export function messageContext(
  { message = cleartextFacts }: PolicyCall,
  read: Names,
): Omit<Partial<MessageFacts>, 'unclear'> {
  return {
    ...(includes(read, 'encrypted') && { encrypted: message.encrypted }),
    ...(includes(read, 'encryptedBytes') && { encryptedBytes: message.encryptedBytes }),
    ...(includes(read, 'trustTier') && { trustTier: message.trustTier }),
  };
}

function agentEntity(id: string, facts?: AgentFacts): EntityJson {
  return { uid: { type: 'A2AAgent', id }, attrs: { role: 'member', ...agentAttributes(facts) }, parents: [] };
}

function agentAttributes({ url = '', skills = [], trustLevel = 'untrusted', quarantined = false }: AgentFacts = {}) {
  return { agentUrl: url, skills: [...skills], trustLevel, quarantined };
}
