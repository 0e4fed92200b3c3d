import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { AgentStore } from '../agents/agent.store.js';
import { calledOf } from './published-names.js';
import type { ChangePublished, GivenExecutor as Executor } from './publishing.types.js';
import { ToolServers } from '../tool-servers.js';

/** Checks the parts of a published agent that depend on other data: registered agents, MCP servers, URLs, handles. */
@Injectable()
export class PublishedChecks {
  constructor(
    private readonly agents: AgentStore,
    private readonly safeFetch: SafeFetch,
    private readonly publicUrl: PublicUrl,
    private readonly servers: ToolServers,
  ) {}

  /**
   * Returns the declaration in the form that is stored. Throws `invalid_params` for an unknown agent, `unprocessable`
   * for an unknown MCP server or tool, `url_not_allowed` as registration does.
   */
  async admitted<Given extends ChangePublished>(org: OrgRef, given: Given): Promise<Given> {
    const { handle, executor } = given;
    return {
      ...given,
      ...(handle && { handle: this.handleOf(org, handle) }),
      ...(executor && { executor: await this.executorOf(org, executor) }),
    };
  }

  /** Returns the ids of the MCP servers that the operator's files declare. */
  async declaredServers({ id }: OrgRef): Promise<ReadonlySet<string>> {
    return (await this.servers.of(id)).declared;
  }

  /** Returns `kofi` for `kofi@here`, when `here` is the org itself or the host of this gateway. */
  private handleOf(org: OrgRef, handle: string): string {
    const { word, host } = calledOf(handle) ?? {};
    const isHere = host === org.slug || (host !== undefined && this.publicUrl.hosts.includes(host));
    return word !== undefined && isHere ? word : handle;
  }

  /**
   * Checks an executor. It replaces the slug of a registered agent by the id, because another agent may get the slug
   * later.
   */
  private async executorOf(org: OrgRef, executor: Executor): Promise<Executor> {
    if (executor.kind === 'http' || executor.kind === 'llm') this.safeFetch.check(executor.url);
    if (executor.kind === 'mcp-tool') await this.requireTool(org, executor);
    if (executor.kind !== 'remote') return executor;
    const agent = await this.agents.find(org.id, executor.agentId);
    if (agent) return { ...executor, agentId: agent.id };
    throw new RialtoError('invalid_params', {
      message: 'executor.agentId: names no registered agent of this org',
      violations: [{ field: 'executor.agentId', description: 'names no registered agent of this org' }],
    });
  }

  private async requireTool(
    { id }: OrgRef,
    { serverId, tool }: Extract<Executor, { kind: 'mcp-tool' }>,
  ): Promise<void> {
    const known = (await this.servers.of(id)).tools.get(serverId);
    if (!known) throw refused('executor.serverId', `there is no MCP server "${serverId}" in this org`);
    // A declared server without tools may not have been reached yet.
    if (tool !== undefined && known.length > 0 && !known.some(({ name }) => name === tool))
      throw refused('executor.tool', `the MCP server "${serverId}" has no tool "${tool}", or it waits for approval`);
  }
}

function refused(field: string, description: string): RialtoError {
  return new RialtoError('unprocessable', {
    message: `${field}: ${description}`,
    hint: 'GET /api/mcp/servers lists the MCP servers, their tools, and the tools that wait for approval',
    violations: [{ field, description }],
  });
}
