import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { storableText } from '../../kernel/json.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { inTurns } from '../../platform/jobs/in-turns.js';
import { OrgDirectory } from '../../policy/org-directory.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import { AgentStore } from '../agents/agent.store.js';
import { understand, type RegisteredAgent } from '../agents/agent-view.js';
import { calledOf } from './published-names.js';
import type { ChangePublished, GivenExecutor as Executor } from './publishing.types.js';
import { ToolServers } from '../tool-servers.js';

/** Number of skills that an error lists. */
const maxListed = 20;

/** Checks the parts of a published agent that depend on other data: registered agents, MCP servers, URLs, handles. */
@Injectable()
export class PublishedChecks {
  constructor(
    private readonly agents: AgentStore,
    private readonly safeFetch: SafeFetch,
    private readonly publicUrl: PublicUrl,
    private readonly servers: ToolServers,
    private readonly orgs: OrgDirectory,
  ) {}

  /**
   * Returns the declaration in the form that is stored. Throws `invalid_params` for an unknown agent, `unprocessable`
   * for an unknown skill, MCP server or tool, `slug_taken` for the host of another org, and `url_not_allowed` as
   * registration does.
   */
  async admitted<Given extends ChangePublished>(org: OrgRef, given: Given): Promise<Given> {
    const { handle, executor } = given;
    return {
      ...given,
      ...(handle && { handle: await this.handleOf(org, handle) }),
      ...(executor && { executor: await this.executorOf(org, executor) }),
    };
  }

  /** Returns the ids of the MCP servers that the operator's files declare. */
  async declaredServers({ id }: OrgRef): Promise<ReadonlySet<string>> {
    return (await this.servers.serversOf(id)).declared;
  }

  /**
   * Returns `kofi` for `kofi@here`, when `here` is the org itself or the host of this gateway. Throws `slug_taken` when
   * the host is the slug or a domain of another org.
   */
  private async handleOf(org: OrgRef, handle: string): Promise<string> {
    const { word, host } = calledOf(handle) ?? {};
    if (word === undefined || host === undefined) return handle;
    if (host === org.slug || this.publicUrl.hosts.includes(host)) return word;
    const owner = await this.orgs.find(host);
    if (!owner || owner.id === org.id) return handle;
    throw new RialtoError('slug_taken', {
      message: `handle: "${host}" belongs to another org`,
      hint: 'use a domain of your org; an admin of the deployment sets them with PUT /api/orgs/{slug}/domains',
      data: { name: handle },
    });
  }

  /**
   * Checks an executor. It replaces the slug of a registered agent by the id, because another agent may get the slug
   * later.
   */
  private async executorOf(org: OrgRef, executor: Executor): Promise<Executor> {
    if (executor.kind === 'http' || executor.kind === 'llm') this.safeFetch.checkUrl(executor.url);
    if (executor.kind !== 'routes') return this.directOf(org, executor, 'executor');
    const routes: typeof executor.routes = [];
    for (const [index, route] of executor.routes.entries()) {
      const direct = await this.directOf(org, route.executor, `executor.routes[${index}].executor`);
      routes.push({ ...route, executor: direct });
    }
    return { ...executor, routes, otherwise: await this.directOf(org, executor.otherwise, 'executor.otherwise') };
  }

  private async directOf<One extends Executor>(org: OrgRef, executor: One, at: string): Promise<One> {
    if (executor.kind === 'mcp-tool') await this.requireTool(org, executor, at);
    if (executor.kind !== 'remote') return executor;
    const agent = await this.agents.find(org.id, executor.agentId);
    if (agent) {
      if (executor.skillId !== undefined) await requireSkill(agent, executor.skillId, at);
      return { ...executor, agentId: agent.id };
    }
    throw new RialtoError('invalid_params', {
      message: `${at}.agentId: names no registered agent of this org`,
      violations: [{ field: `${at}.agentId`, description: 'names no registered agent of this org' }],
    });
  }

  private async requireTool(
    { id }: OrgRef,
    { serverId, tool }: Extract<Executor, { kind: 'mcp-tool' }>,
    at: string,
  ): Promise<void> {
    const known = (await this.servers.serversOf(id)).tools.get(serverId);
    if (!known) throw refusedField(`${at}.serverId`, `there is no MCP server "${serverId}" in this org`);
    // A declared server without tools may not have been reached yet.
    if (tool !== undefined && known.length > 0 && !known.some(({ name }) => name === tool))
      throw refusedField(`${at}.tool`, `the MCP server "${serverId}" has no tool "${tool}", or it waits for approval`);
  }
}

/** Refuses a skill that the card does not have. A card that is not known yet, or an extended one, may have it. */
async function requireSkill(agent: AgentEntity, skillId: string, at: string): Promise<void> {
  const [{ card }] = (await inTurns(understand([agent]))) as [RegisteredAgent];
  if (!card || card.capabilities.extendedAgentCard || card.skills.length === 0) return;
  const ids = card.skills.map(({ id }) => id);
  if (ids.includes(skillId)) return;
  const listed = ids.slice(0, maxListed).join(', ') + (ids.length > maxListed ? ', …' : '');
  const description = `the agent "${agent.slug}" has no skill "${skillId}"; its skills: ${storableText(listed, 1_000)}`;
  throw refusedField(`${at}.skillId`, description, `GET /api/a2a/agents/${agent.slug} shows the skills of its card`);
}

const toolsHint = 'GET /api/mcp/servers lists the MCP servers, their tools, and the tools that wait for approval';

function refusedField(field: string, description: string, hint = toolsHint): RialtoError {
  return new RialtoError('unprocessable', {
    message: `${field}: ${description}`,
    hint,
    violations: [{ field, description }],
  });
}
