import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { OwnAgentTools } from './own-agent-tools.js';
import { TaskStatusTool } from './task-status-tool.js';
import type { TaskHandle } from './mcp-task.js';
import { McpTasks } from './mcp-tasks.js';
import type { Peer } from '../../kernel/peer.js';
import type { Page } from './list-page.js';
import { beforeCallersLeaveMs, soonMs, type ListOptions, type ToolCall, type ToolOutcome } from './tool-call.types.js';
import { ToolsService } from './tools.service.js';

/**
 * All tools of an MCP client: first those for published agents and tasks, then the skills of registered agents and the
 * tools of MCP servers.
 */
@Injectable()
export class ToolSet {
  constructor(
    private readonly publishedTools: OwnAgentTools,
    private readonly skills: ToolsService,
    private readonly status: TaskStatusTool,
    private readonly tasks: McpTasks,
  ) {}

  async list(ctx: CallContext, options: ListOptions, cursor?: unknown): Promise<Page> {
    const page = await this.skills.list(ctx, options, cursor);
    if (cursor !== undefined || options.agents || options.servers || options.only !== undefined) return page;
    const listed = await this.publishedTools.listed(ctx);
    return { ...page, texts: [...listed, ...(await this.status.listed(ctx)), ...page.texts] };
  }

  /** @param takesTasks true when the caller takes a task instead of a result that is not ready in time. */
  async call(
    ctx: CallContext,
    call: ToolCall,
    { only, takesTasks = false }: { only?: string; takesTasks?: boolean } = {},
  ): Promise<ToolOutcome['result'] | TaskHandle> {
    const isOfAll = only === undefined;
    if (isOfAll && this.status.has(call.name)) return this.status.call(ctx, call);
    const mayGoOn = isOfAll && !isAskedByResults(ctx.peer);
    const goesOnAfterMs = takesTasks ? soonMs : mayGoOn ? beforeCallersLeaveMs : undefined;
    const { result, goesOnAs } =
      isOfAll && this.publishedTools.has(call.name)
        ? await this.publishedTools.call(ctx, call)
        : await this.skills.call(ctx, call, { only, goesOnAfterMs });
    if (goesOnAs === undefined) return result;
    this.status.offer(ctx);
    return takesTasks ? this.tasks.handle(ctx, goesOnAs) : result;
  }
}

/** True for a client that answers questions only in results: it has no way to answer the questions of a task. */
function isAskedByResults(peer: Peer | undefined): boolean {
  return peer?.era === 'modern' && Object.keys(peer.capabilities).length > 0;
}
