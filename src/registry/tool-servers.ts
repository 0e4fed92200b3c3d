import { Injectable } from '@nestjs/common';
import type { OrgId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import type { PublishedSkill } from '../protocol/a2a/card/published-card.js';
import type { ExecutorConfig } from './published.types.js';

/** The parts of an MCP tool that a skill is made of. */
export interface SkillTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonObject;
}

/** Callable tools of the MCP servers of an org, by server id. `version` changes whenever a tool may have changed. */
export interface ServersOfOrg {
  readonly version: string;
  readonly tools: ReadonlyMap<string, readonly SkillTool[]>;
  /** Ids of the servers, by the ids of their rows. */
  readonly ids: ReadonlyMap<string, string>;
  /** Ids of the servers that the operator's files declare. */
  readonly declared: ReadonlySet<string>;
}

export const noServers: ServersOfOrg = { version: '', tools: new Map(), ids: new Map(), declared: new Set() };

/** Reads MCP servers for published agents. The module of MCP servers sets the reader at start. */
@Injectable()
export class ToolServers {
  private read: (org: OrgId) => Promise<ServersOfOrg> = () => Promise.resolve(noServers);

  from(read: (org: OrgId) => Promise<ServersOfOrg>): void {
    this.read = read;
  }

  serversOf(org: OrgId): Promise<ServersOfOrg> {
    return this.read(org);
  }
}

/**
 * Returns the skills of an agent that offers one tool of a server, or all of them. Undefined for other agents, and
 * when the server or tool is missing. Pure.
 */
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
