import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { OwnAgentTools } from './own-agent-tools.js';
import { ServerCalls } from './server-calls.js';
import { SkillCalls } from './skill-calls.js';
import { TaskStatusTool } from './task-status-tool.js';
import { findTool } from './tool-catalogue.js';
import { ToolCatalogues } from './tool-catalogues.js';
import { beforeCallersLeaveMs, soonMs, type CallOptions, type ToolCall, type ToolOutcome } from './tool-call.types.js';

/**
 * Routes the call of a tool by its name: to a tool of the gateway itself, to the skill of a registered agent, or to an
 * MCP server.
 */
@Injectable()
export class ToolRouter {
  constructor(
    private readonly catalogues: ToolCatalogues,
    private readonly agents: OwnAgentTools,
    private readonly status: TaskStatusTool,
    private readonly skills: SkillCalls,
    private readonly servers: ServerCalls,
  ) {}

  /** Calls a tool by either of its names. Throws RialtoError; bad arguments of a skill are a result. */
  async callTool(ctx: CallContext, call: ToolCall, options: CallOptions = {}): Promise<ToolOutcome> {
    const { only, takesTasks = false, isRest = false } = options;
    const hasOwnTools = only === undefined && !isRest;
    if (hasOwnTools && this.status.has(call.name)) return { result: await this.status.callTool(ctx, call) };
    let outcome: ToolOutcome;
    if (hasOwnTools && this.agents.has(call.name)) outcome = await this.agents.callTool(ctx, call);
    else {
      const tool = findTool(await this.catalogues.catalogueFor(ctx), call, only);
      if (!tool) return this.skills.refuseUnknown(ctx, call);
      const mayGoOn = only === undefined && !isAskedByResults(ctx.peer);
      const goesOnAfterMs = takesTasks ? soonMs : mayGoOn ? beforeCallersLeaveMs : undefined;
      outcome =
        tool.kind === 'skill'
          ? await this.skills.callSkill(ctx, tool, call)
          : await this.servers.callTool(ctx, tool, goesOnAfterMs);
    }
    if (outcome.goesOnAs !== undefined && !isRest) this.status.offer(ctx);
    return outcome;
  }
}

/** True for a client that answers questions only in results: it has no way to answer the questions of a task. */
function isAskedByResults(peer: Peer | undefined): boolean {
  return peer?.era === 'modern' && Object.keys(peer.capabilities).length > 0;
}

/** Reads the params of `tools/call`. Throws `invalid_params`. */
export function readToolCall(params: unknown): ToolCall {
  const given = isJsonObject(params) ? params : {};
  const { name, arguments: args = {} } = given;
  if (typeof name !== 'string' || name === '' || name.length > 256)
    throw new RialtoError('invalid_params', { message: 'params.name must be the name of a tool' });
  if (!isJsonObject(args)) throw new RialtoError('invalid_params', { message: 'params.arguments must be an object' });
  return { name, args };
}
