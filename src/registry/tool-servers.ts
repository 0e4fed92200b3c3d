import { Injectable } from '@nestjs/common';
import type { OrgId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import type { PublishedSkill } from '../protocol/a2a/card/published-card.js';
import type { ExecutorConfig } from './published.types.js';

/** A tool of an MCP server, as far as a skill is made of it. */
export interface SkillTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
}

/** The tools that may be called at the MCP servers of an org, by the id of the server; `version` changes whenever they may have. */
export interface ServersOfOrg {
  readonly version: string;
  readonly tools: ReadonlyMap<string, readonly SkillTool[]>;
  /** The ids of the servers, by the ids of their rows. */
  readonly ids: ReadonlyMap<string, string>;
  /** The ids of those that the operator's files declare. */
  readonly declared: ReadonlySet<string>;
}

export const noServers: ServersOfOrg = { version: '', tools: new Map(), ids: new Map(), declared: new Set() };

/** MCP servers, as far as agents of ours are made of them. The room that knows them gives them when it starts. */
@Injectable()
export class ToolServers {
  private read: (org: OrgId) => Promise<ServersOfOrg> = () => Promise.resolve(noServers);

  from(read: (org: OrgId) => Promise<ServersOfOrg>): void {
    this.read = read;
  }

  of(org: OrgId): Promise<ServersOfOrg> {
    return this.read(org);
  }
}

/** The skills of an agent that is one tool of a server, or all of them. Undefined for other agents, and without the server or tool. Pure. */
export function skillsOfTools(executor: ExecutorConfig, { tools }: ServersOfOrg): PublishedSkill[] | undefined {
  if (executor.kind !== 'mcp-tool') return undefined;
  const { serverId, tool: only } = executor;
  const offered = tools.get(serverId)?.filter(({ name }) => only === undefined || name === only);
  return offered?.length ? offered.map((tool) => skillOfTool(tool, serverId)) : undefined;
}

function skillOfTool({ name, title, description, inputSchema }: SkillTool, serverId: string): PublishedSkill {
  return {
    id: name,
    name: title || name,
    description: description || title || name,
    tags: ['mcp', serverId],
    inputSchema,
  };
}
