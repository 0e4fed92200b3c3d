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

/** Calls of the tools of MCP servers. */
@Injectable()
export class ToolMessages {
  constructor(
    private readonly servers: ServersInSight,
    private readonly tools: UpstreamTools,
    private readonly calls: UpstreamCalls,
  ) {}

  /** Throws as UpstreamTools.call does, as ServersInSight.named, and `invalid_params`. */
  async call({ ctx, payload }: A2eCall): Promise<JsonObject> {
    const tool = optionalText(payload, 'tool') ?? requireText(payload, 'name');
    const args = optionalObject(payload, 'arguments') ?? optionalObject(payload, 'args') ?? {};
    const wish = { tool, args, strategy: strategyOf(payload) };
    const only = await this.servers.named(ctx, payload, 'tools');
    return only ? this.callOf(ctx, only, wish) : this.callAny(ctx, wish);
  }

  private async callAny(ctx: CallContext, wish: ToolWish): Promise<JsonObject> {
    const { target, result } = await this.tools.call(ctx, wish);
    return { tool: target.canonical, server_id: target.server.row.serverId, ...toolOutcome(result) };
  }

  /** By the name that the server knows it by, or the one that policies do. */
  private async callOf(ctx: CallContext, { row, tools }: RegisteredServer, wish: ToolWish): Promise<JsonObject> {
    const { serverId } = row;
    const target =
      tools.find(({ tool, canonical }) => tool.name === wish.tool || canonical === wish.tool) ??
      tools.find(({ tool }) => literalName(serverId, tool.name) === wish.tool);
    const canonical = target?.canonical ?? upstreamName(serverId, wish.tool);
    const result = await this.calls.call(ctx, { target, canonical, serverId, args: wish.args });
    return { tool: canonical, server_id: serverId, ...toolOutcome(result) };
  }
}

function strategyOf({ strategy }: JsonObject): Strategy | undefined {
  if (strategy === undefined || strategy === null) return undefined;
  const known = strategies.find((name) => name === strategy);
  if (known) return known;
  const given = JSON.stringify(strategy).slice(0, 100);
  throw invalidMember('strategy', `is ${strategies.join(', ')}; there is none called ${given}`);
}
