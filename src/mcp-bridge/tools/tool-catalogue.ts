import type { Json, JsonObject } from '../../kernel/json.js';
import { literalName, portableName, upstreamName } from '../../protocol/mcp/tool-names.js';
import { takesText } from '../../protocol/a2a/remote/skill-input.js';
import { listedSchema, skillSchema } from '../../protocol/mcp/schema/tool-schema.js';
import type { AgentSnapshot } from '../../registry/registry.service.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';
import type { ServerSnapshot } from '../../upstreams/upstreams.service.js';
import type { RegisteredServer, UpstreamTool } from '../../upstreams/registered-server.types.js';
import type { UpstreamCall } from '../../upstreams/upstream-calls.js';
import type { ToolCall } from './tool-call.types.js';

export type NameMode = 'portable' | 'canonical' | 'both';
/** Names to list; `own` lists the names that the MCP server uses. */
export type ListedNames = NameMode | 'own';

interface Named {
  readonly canonical: string;
  readonly alias: string;
  /** The tool as a JSON text for `tools/list`, under each of its names. */
  readonly listed: { readonly canonical: string; readonly portable: string };
}

/** A skill as a tool: its names, its schema, and its agent. */
export interface SkillEntry extends Named {
  readonly kind: 'skill';
  readonly agent: RegisteredAgent;
  readonly skillId: string;
  /** The schema of the card, with the top level that MCP requires. */
  readonly inputSchema: Json | undefined;
  /** True when no arguments pass the schema; then the tool is not listed. */
  readonly isUncallable: boolean;
}

/** A tool of an MCP server. */
export interface UpstreamEntry extends Named {
  readonly kind: 'upstream';
  readonly target: UpstreamTool;
}

export type ToolEntry = SkillEntry | UpstreamEntry;

/** All tools of an org, found by any of their names and listed in a stable order. */
export interface ToolCatalogue {
  readonly entries: readonly ToolEntry[];
  readonly byName: ReadonlyMap<string, ToolEntry>;
}

const metaKey = 'dev.rialto/tool';

/** Entries by agent and by server: catalogues of one org differ by caller, but share agents and servers. */
const skillEntries = new WeakMap<RegisteredAgent, readonly SkillEntry[]>();
const serverEntries = new WeakMap<RegisteredServer, readonly UpstreamEntry[]>();

function* entriesOf<Owner extends object, Tool, Entry>(
  owner: Owner & { readonly tools: readonly Tool[] },
  known: WeakMap<Owner, readonly Entry[]>,
  entryOf: (tool: Tool) => Entry,
): Generator<void, readonly Entry[]> {
  const earlier = known.get(owner);
  if (earlier) return earlier;
  const entries: Entry[] = [];
  for (const tool of owner.tools) {
    entries.push(entryOf(tool));
    yield;
  }
  known.set(owner, entries);
  return entries;
}

/**
 * Builds the catalogue of an org. Tools of unreachable agents can still be called, but are not listed (RE-45). Yields
 * after each tool, because it may have a large schema. Pure.
 */
export function* catalogueOf({ agents }: AgentSnapshot, { servers }: ServerSnapshot): Generator<void, ToolCatalogue> {
  const entries: ToolEntry[] = [];
  for (const agent of agents)
    entries.push(...(yield* entriesOf(agent, skillEntries, (tool) => skillEntry(agent, tool))));
  for (const server of servers) entries.push(...(yield* entriesOf(server, serverEntries, upstreamEntry)));
  entries.sort((a, b) => (a.canonical < b.canonical ? -1 : 1));
  // When two tools have the same name, the later entry gets it: a literal name never hides an alias, and neither hides
  // a canonical name.
  const byName = new Map<string, ToolEntry>();
  for (const entry of entries)
    if (entry.kind === 'upstream')
      byName.set(literalName(entry.target.server.row.serverId, entry.target.tool.name), entry);
  for (const entry of entries) byName.set(entry.alias, entry);
  for (const entry of entries) byName.set(entry.canonical, entry);
  return { entries, byName };
}

function skillEntry(
  agent: RegisteredAgent,
  { skillId, canonical, alias }: RegisteredAgent['tools'][number],
): SkillEntry {
  const skill = agent.card!.skills.find(({ id }) => id === skillId)!;
  const { schema, refusal } = skillSchema(skill.inputSchema);
  const described = skill.description === '' ? '' : `\n\n${skill.description}`;
  const tool = (name: string): string => {
    const meta: JsonObject = {
      agent: agent.row.slug,
      skillId,
      canonicalName: canonical,
      ...(name !== canonical && { aliasOf: canonical }),
    };
    return JSON.stringify({
      name,
      title: skill.name,
      description: `Invokes the ${skillId} skill on remote A2A agent ${agent.row.name}${described}`,
      inputSchema: listedSchema(skill.inputSchema, takesText(skill, agent.card!.defaultInputModes)),
      _meta: { [metaKey]: meta },
    });
  };
  return {
    kind: 'skill',
    agent,
    skillId,
    canonical,
    alias,
    inputSchema: schema ?? skill.inputSchema,
    isUncallable: refusal !== undefined,
    listed: { canonical: tool(canonical), portable: tool(alias) },
  };
}

/**
 * Builds the tool as its server describes it, with another name, and with a description that names the server (AE-56,
 * AE-59).
 */
function upstreamEntry(target: UpstreamTool): UpstreamEntry {
  const { canonical, tool, server } = target;
  const { serverId, name: serverName } = server.row;
  const alias = portableName(canonical);
  const listed = (name: string): string => {
    const meta: JsonObject = {
      server: serverId,
      tool: tool.name,
      canonicalName: canonical,
      tags: ['mcp', serverId, serverName],
      ...(name !== canonical && { aliasOf: canonical }),
    };
    return JSON.stringify({
      ...tool,
      name,
      description: `[MCP:${serverName}] ${typeof tool.description === 'string' ? tool.description : ''}`.trimEnd(),
      _meta: { ...(tool._meta as JsonObject | undefined), [metaKey]: meta },
    });
  };
  return {
    kind: 'upstream',
    target,
    canonical,
    alias,
    listed: { canonical: listed(canonical), portable: listed(alias) },
  };
}

/** A tool that a caller named: a skill, or the call of a tool of an MCP server, which may not exist. */
export type FoundTool = SkillEntry | (UpstreamCall & { readonly kind: 'server' });

/**
 * Finds the tool of a call by either of its names; undefined when no agent and no server can have it.
 * @param only id of the only MCP server of the door; the call then uses the name of the server.
 */
export function findTool(
  { byName }: ToolCatalogue,
  { name, args }: ToolCall,
  only: string | undefined,
): FoundTool | undefined {
  if (only !== undefined) {
    const canonical = upstreamName(only, name);
    const entry = byName.get(canonical);
    const target = entry?.kind === 'upstream' && entry.target.tool.name === name ? entry.target : undefined;
    return { kind: 'server', target, canonical, legacyAlias: entry?.alias, calledAs: name, serverId: only, args };
  }
  const entry = byName.get(name);
  if (entry?.kind === 'skill') return entry;
  if (!entry && !namesServer(name)) return undefined;
  const { target, canonical = name, alias } = entry ?? {};
  const serverId = target?.server.row.serverId ?? serverOfName(name);
  return { kind: 'server', target, canonical, legacyAlias: alias, calledAs: name, serverId, args };
}

/** True for a name of the form `<serverId>__<tool>`; a skill never has such a name. */
function namesServer(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]*?__./.test(name);
}

/** Returns the server in the canonical name of a tool or prompt. */
export function serverOfName(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf('__')));
}

/** The agent or server of a tool, used for discovery and filters. */
export interface ToolOwner {
  readonly kind: 'agent' | 'server';
  readonly id: string;
}

export function ownerOf(entry: ToolEntry): ToolOwner {
  return entry.kind === 'skill'
    ? { kind: 'agent', id: entry.agent.row.slug }
    : { kind: 'server', id: entry.target.server.row.serverId };
}

/** True for a tool that is listed when the caller may discover its owner. */
export function isListed(entry: ToolEntry): boolean {
  if (entry.kind === 'upstream') return !entry.target.quarantine;
  if (entry.isUncallable) return false;
  return entry.agent.row.health !== 'unreachable' && entry.agent.row.quarantinedAt === null;
}

/** Returns the JSON texts of an entry under the requested names. */
export function textsOf(entry: ToolEntry, names: ListedNames): string[] {
  const { listed, canonical, alias } = entry;
  switch (names) {
    case 'own':
      return entry.kind === 'upstream' ? [JSON.stringify(entry.target.tool)] : [];
    case 'portable':
      return [listed.portable];
    case 'canonical':
      return [listed.canonical];
    case 'both':
      return canonical === alias ? [listed.canonical] : [listed.canonical, listed.portable];
  }
}
