import type { Context, EntityJson, TypeAndId } from '@cedar-policy/cedar-wasm/nodejs';
import { roles, type Principal, type Surface } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Action, ResourceRef } from '../../kernel/verbs.js';
import type { PrincipalType } from './cedar-schema.js';
import { includes, type Names } from './context-reads.js';

/** What the registry knows of an agent; `version` changes with them and stands for them in the decision cache. */
export interface AgentFacts {
  readonly url?: string;
  readonly skills?: readonly string[];
  readonly trustLevel?: string;
  /** Its card changed, and nobody approved that yet. */
  readonly quarantined?: boolean;
  readonly version?: string;
}

/** What is known of a tool of an MCP server. */
export interface ToolFacts {
  /** Its definition is not the one that was approved. */
  readonly quarantined: boolean;
}

/** What a task's row says; `version` as above. */
export interface TaskFacts {
  /** Name of the published agent it was given to. */
  readonly agent?: string;
  readonly owner?: Pick<Principal, 'kind' | 'id'>;
  readonly version?: string;
}

/** One question to the policies, in the words of the kernel. */
export interface PolicyCall {
  readonly principal: Principal;
  /** Facts of the calling agent; absent means an untrusted one. */
  readonly caller?: AgentFacts;
  readonly action: Action;
  readonly resource: ResourceRef;
  /** Facts of the agent that is the resource, or whose skill is. */
  readonly agent?: AgentFacts;
  /** Facts of the tool that is the resource; absent for a name that is no tool's. */
  readonly tool?: ToolFacts;
  readonly task?: TaskFacts;
  readonly surface: Surface;
  readonly depth: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly args?: JsonObject;
}

export const inputLimits = { tags: 256, bytes: 8_192 } as const;

const typeOfKind = {
  user: 'User',
  agent: 'A2AAgent',
  service: 'Service',
  anonymous: 'Anonymous',
} as const satisfies Record<Principal['kind'], PrincipalType>;
const roleNames: ReadonlySet<string> = new Set(roles);

/** The Cedar id of a caller, e.g. `User::"bob"` (D13). */
export function principalUid({ kind, id }: Pick<Principal, 'kind' | 'id'>): TypeAndId {
  return { type: typeOfKind[kind], id };
}

/**
 * The caller as an entity, in `Group::"<g>"` for its role and each of its groups. A group that is named like a role is
 * left out: only the role itself puts anyone in `Group::"admin"`.
 */
export function principalEntity(principal: Principal, facts?: AgentFacts): EntityJson {
  const groups = new Set([principal.role, ...principal.groups.filter((group) => !roleNames.has(group))]);
  const parents = [...groups].map((id) => ({ type: 'Group', id }));
  const attrs = { role: principal.role, ...(principal.kind === 'agent' && agentAttributes(facts)) };
  return { uid: principalUid(principal), attrs, parents };
}

/** The resource and what it lies in, as entities without a missing attribute (reliability: no attribute may be absent). */
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

/** The caller and the resource of one call; an agent that calls itself is one entity. */
export function entitiesOf(call: PolicyCall): EntityJson[] {
  const self = principalUid(call.principal);
  const around = resourceEntities(call);
  const others = around.filter(({ uid }) => !('type' in uid && uid.type === self.type && uid.id === self.id));
  const callsItself = others.length < around.length;
  return [principalEntity(call.principal, call.caller ?? (callsItself ? call.agent : undefined)), ...others];
}

/** Where a resource lies: as the caller says, else by the shape of its id (`agent.skill`, `server__tool`). */
export function parentOf({ type, id, parent }: ResourceRef): string {
  if (parent !== undefined) return parent;
  const separator = type === 'Skill' ? '.' : '__';
  return type === 'Resource' || !id.includes(separator) ? '' : id.slice(0, id.indexOf(separator));
}

/** The arguments that policies read, as tags; `unreadable` names those too long or too many to be shown to a policy. */
export interface InputTags {
  readonly tags: Readonly<Record<string, string>>;
  readonly unreadable: readonly string[];
}

/**
 * A string tag for each top-level scalar argument that is read: numbers and booleans as JSON text; null, objects and
 * arrays left out (D13). What exceeds the limits is reported, not dropped: padding must not blind a forbid.
 */
export function inputTags(args: JsonObject = {}, read: Names = 'all'): InputTags {
  const found: [string, string][] = [];
  const unreadable: string[] = [];
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

/** The `Input` entity that `context.input` points to. */
export function inputEntity(tags: Readonly<Record<string, string>>): EntityJson {
  return { uid: inputUid, attrs: {}, parents: [], tags: { ...tags } };
}

/** The context of D13, reduced to the attributes that are read. */
export function contextOf(call: PolicyCall, read: Names = 'all'): Context {
  return {
    ...(includes(read, 'surface') && { surface: call.surface }),
    ...(includes(read, 'depth') && { depth: call.depth }),
    ...(includes(read, 'time') && { time: { __extn: { fn: 'datetime', arg: new Date(call.time).toISOString() } } }),
    ...(includes(read, 'input') && { input: { __entity: { ...inputUid } } }),
  };
}

function agentEntity(id: string, facts?: AgentFacts): EntityJson {
  return { uid: { type: 'A2AAgent', id }, attrs: { role: 'member', ...agentAttributes(facts) }, parents: [] };
}

function agentAttributes({ url = '', skills = [], trustLevel = 'untrusted', quarantined = false }: AgentFacts = {}) {
  return { agentUrl: url, skills: [...skills], trustLevel, quarantined };
}
