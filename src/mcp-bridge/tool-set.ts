import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { OwnAgentTools } from './own-agent-tools.js';
import { TaskStatusTool } from './task-status-tool.js';
import type { TaskHandle } from './mcp-task.js';
import { McpTasks } from './mcp-tasks.service.js';
import type { Page } from './list-page.js';
import { ToolsService, type ListOptions, type ToolCall, type ToolOutcome } from './tools.service.js';

/** All tools of an MCP client: those of agents of our own and of tasks first, then the skills of registered agents and the tools of MCP servers. */
@Injectable()
export class ToolSet {
  constructor(
    private readonly own: OwnAgentTools,
    private readonly skills: ToolsService,
    private readonly status: TaskStatusTool,
    private readonly tasks: McpTasks,
  ) {}

  async list(ctx: CallContext, options: ListOptions, cursor?: unknown): Promise<Page> {
    const page = await this.skills.list(ctx, options, cursor);
    if (cursor !== undefined || options.agents || options.servers || options.only !== undefined) return page;
    const own = await this.own.listed(ctx);
    return { ...page, texts: [...own, ...(await this.status.listed(ctx)), ...page.texts] };
  }

  /** @param takesTasks whether the caller takes a task in place of a result that is not there in time. */
  async call(
    ctx: CallContext,
    call: ToolCall,
    { only, takesTasks = false }: { only?: string; takesTasks?: boolean } = {},
  ): Promise<ToolOutcome['result'] | TaskHandle> {
    if (only !== undefined) return (await this.skills.call(ctx, call, only)).result;
    if (this.status.has(call.name)) return this.status.call(ctx, call);
    const { result, goesOnAs } = await (this.own.has(call.name) ? this.own : this.skills).call(ctx, call);
    if (goesOnAs === undefined) return result;
    this.status.offer(ctx);
    return takesTasks ? this.tasks.handle(ctx, goesOnAs) : result;
  }
}
