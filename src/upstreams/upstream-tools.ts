import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { literalName } from '../protocol/mcp/tool-names.js';
import type { UpstreamTool } from './registered-server.types.js';
import { chooseIndex } from './storage/tool-choice.js';
import { UpstreamCalls } from './upstream-calls.js';
import { CallerConnections } from './credentials/caller-connections.js';
import type { Strategy } from './upstream.types.js';
import { UpstreamsService } from './upstreams.service.js';

export interface ToolWish {
  /** Name of the tool at its servers, or `<serverId>__<tool>`. */
  readonly tool: string;
  readonly args: JsonObject;
  readonly strategy?: Strategy;
}

/** Answer of the server that was chosen. */
export interface ChosenAnswer {
  readonly target: UpstreamTool;
  readonly result: JsonObject;
}

/** Finds and calls tools of MCP servers by name, on any server that offers them. */
@Injectable()
export class UpstreamTools {
  /** Round-robin position; each process counts its own calls. */
  private turn = 0;

  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly calls: UpstreamCalls,
    private readonly connections: CallerConnections,
  ) {}

  /** Chooses one of the tools of this name that the caller may discover; undefined when there is none. */
  async chooseTool(ctx: CallContext, name: string, strategy: Strategy = 'first'): Promise<UpstreamTool | undefined> {
    const matching = await this.findTools(ctx, name);
    const usable = matching.filter(({ quarantine }) => !quarantine);
    const targets = usable.length > 0 ? usable : matching;
    if (targets.length === 0) return undefined;
    const loads = await Promise.all(targets.map(({ server }) => this.connections.loadOf(ctx, server.row)));
    return targets[chooseIndex(loads, strategy, this.turn++)];
  }

  /** Returns the tools of this name that the caller may discover, in order of registration (AE-74). */
  private async findTools(ctx: CallContext, name: string): Promise<UpstreamTool[]> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    const all = servers.flatMap(({ tools }) => tools);
    const exact = all.filter(({ tool, canonical }) => tool.name === name || canonical === name);
    const portable = all.filter(({ server, tool }) => literalName(server.row.serverId, tool.name) === name);
    const matching = exact.length > 0 ? exact : portable;
    const shown = await Promise.all(matching.map(({ server }) => this.upstreams.mayDiscover(ctx, server.row.serverId)));
    return matching.filter((_, index) => shown[index]).sort(byAge);
  }

  /** Calls a tool. Throws `not_found` when no server offers it, and as UpstreamCalls.callTool does. */
  async callTool(ctx: CallContext, { tool, args, strategy }: ToolWish): Promise<ChosenAnswer> {
    const target = await this.chooseTool(ctx, tool, strategy);
    if (!target) throw new RialtoError('not_found', { message: `No server found for tool: ${tool.slice(0, 200)}` });
    const { canonical, server } = target;
    const result = await this.calls.callTool(ctx, { target, canonical, serverId: server.row.serverId, args });
    return { target, result };
  }
}

/** The tool of the server that was registered first comes first: a later server cannot take over its name (AE-72). */
function byAge({ server: { row: one } }: UpstreamTool, { server: { row: other } }: UpstreamTool): number {
  return one.createdAt.getTime() - other.createdAt.getTime();
}
