import type { JsonObject } from '../kernel/json.js';
import { compileToolSchema, listedSchema, type CompiledSchema } from '../protocol/mcp/tool-schema.js';
import type { AgentSnapshot } from '../registry/registry.service.js';
import type { RegisteredAgent } from '../registry/registry.types.js';

export type NameMode = 'portable' | 'canonical' | 'both';

/** A skill as a tool: its names, its schema, and where a call goes. */
export interface ToolEntry {
  readonly agent: RegisteredAgent;
  readonly skillId: string;
  readonly canonical: string;
  readonly alias: string;
  /** Compiled at the first call. */
  readonly schema: () => CompiledSchema;
  /** The tool as `tools/list` shows it, ready to be sent, by each of its names. */
  readonly listed: { readonly canonical: string; readonly portable: string };
}

/** All tools of an org: looked up by either name, listed in a stable order. */
export interface ToolCatalogue {
  readonly version: string;
  readonly entries: readonly ToolEntry[];
  readonly byName: ReadonlyMap<string, ToolEntry>;
}

const metaKey = 'dev.rialto/tool';

/** Makes the catalogue of a snapshot. Pure. Unreachable agents keep their tools callable, but are not listed (RE-45). */
export function catalogueOf(snapshot: AgentSnapshot): ToolCatalogue {
  const entries = snapshot.agents.flatMap((agent) => agent.tools.map((names) => entryOf(agent, names)));
  entries.sort((a, b) => (a.canonical < b.canonical ? -1 : 1));
  const byName = new Map(entries.map((entry) => [entry.alias, entry]));
  for (const entry of entries) byName.set(entry.canonical, entry);
  return { version: snapshot.version, entries, byName };
}

function entryOf(agent: RegisteredAgent, { skillId, canonical, alias }: RegisteredAgent['tools'][number]): ToolEntry {
  const skill = agent.card!.skills.find(({ id }) => id === skillId)!;
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
      inputSchema: listedSchema(skill.inputSchema),
      _meta: { [metaKey]: meta },
    });
  };
  let compiled: CompiledSchema | undefined;
  return {
    agent,
    skillId,
    canonical,
    alias,
    schema: () => (compiled ??= compileToolSchema(skill.inputSchema)),
    listed: { canonical: tool(canonical), portable: tool(alias) },
  };
}

/** True for an agent whose tools are shown. */
export function isListed({ row }: RegisteredAgent): boolean {
  return row.health !== 'unreachable' && row.quarantinedAt === null;
}

/** The JSON texts of an entry under the names that are asked for. */
export function textsOf({ listed }: ToolEntry, names: NameMode): string[] {
  switch (names) {
    case 'portable':
      return [listed.portable];
    case 'canonical':
      return [listed.canonical];
    case 'both':
      return [listed.canonical, listed.portable];
  }
}
