import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import { toolOutcome } from '../../protocol/a2e/shapes.js';
import { literalName, upstreamName } from '../../protocol/mcp/tool-names.js';
import { UpstreamCalls } from '../../upstreams/upstream-calls.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamTools, type ToolWish } from '../../upstreams/upstream-tools.js';
import { strategies, type Strategy } from '../../upstreams/upstream.types.js';
import { invalidMember, optionalObject, optionalText, requireText, type A2eCall } from './a2e-call.js';
import { ServersInSight } from './servers-in-sight.js';

/** Handles calls of tools of MCP servers. */
@Injectable()
export class ToolMessages {
  constructor(
    private readonly servers: ServersInSight,
    private readonly tools: UpstreamTools,
    private readonly calls: UpstreamCalls,
  ) {}

  /** Calls a tool. Throws the errors of UpstreamTools.callTool and ServersInSight.findNamed, and `invalid_params`. */
  async callTool({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const tool = optionalText(payload, 'tool') ?? requireText(payload, 'name');
    const args = optionalObject(payload, 'arguments') ?? optionalObject(payload, 'args') ?? {};
    const wanted = { tool, args, strategy: strategyOf(payload) };
    const only = await this.servers.findNamed(ctx, payload, 'tools');
    return only ? this.callAt(ctx, only, wanted) : this.callAny(ctx, wanted);
  }

  private async callAny(ctx: CallContext, wanted: ToolWish): Promise<JsonObject> {
    const { target, result } = await this.tools.callTool(ctx, wanted);
    return { tool: target.canonical, server_id: target.server.row.serverId, ...toolOutcome(result) };
  }

  /** Calls a tool of one server, by its name at the server or its name in policies. */
  private async callAt(ctx: CallContext, { row, tools }: RegisteredServer, wanted: ToolWish): Promise<JsonObject> {
    const { serverId } = row;
    const target =
      tools.find(({ tool, canonical }) => tool.name === wanted.tool || canonical === wanted.tool) ??
      tools.find(({ tool }) => literalName(serverId, tool.name) === wanted.tool);
    const canonical = target?.canonical ?? upstreamName(serverId, wanted.tool);
    const result = await this.calls.callTool(ctx, { target, canonical, serverId, args: wanted.args });
    return { tool: canonical, server_id: serverId, ...toolOutcome(result) };
  }
}

function strategyOf({ strategy }: JsonObject): Strategy | undefined {
  if (strategy === undefined || strategy === null) return undefined;
  const known = strategies.find((name) => name === strategy);
  if (known) return known;
  const given = JSON.stringify(strategy).slice(0, 100);
  throw invalidMember('strategy', `must be one of ${strategies.join(', ')}; ${given} is unknown`);
}
