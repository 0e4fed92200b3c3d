import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { literalName } from '../protocol/mcp/tool-names.js';
import type { UpstreamTool } from './registered-server.types.js';
import { choose } from './storage/tool-choice.js';
import { UpstreamCalls } from './upstream-calls.js';
import { CallerConnections } from './credentials/caller-connections.js';
import type { TaskTaker } from './upstream-tasks.types.js';
import type { Strategy } from './upstream.types.js';
import { UpstreamsService } from './upstreams.service.js';

export interface ToolWish {
  /** As its servers know it, or `<serverId>__<tool>`. */
  readonly tool: string;
  readonly args: JsonObject;
  readonly strategy?: Strategy;
  /** Who takes a task in place of a result, once it is known whose tool is called. */
  readonly tasksOf?: (call: { target: UpstreamTool; canonical: string; args: JsonObject }) => TaskTaker;
}

/** What one of the servers answered. */
export interface ChosenAnswer {
  readonly target: UpstreamTool;
  readonly result: JsonObject;
}

/** Tools of MCP servers by what they are called, whichever server has them. */
@Injectable()
export class UpstreamTools {
  /** Of this process, which sees its own calls. */
  private turn = 0;

  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly calls: UpstreamCalls,
    private readonly lines: CallerConnections,
  ) {}

  /** Those that the caller may discover, in order of the ids of their servers (AE-74). */
  async find(ctx: CallContext, name: string): Promise<UpstreamTool[]> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    const all = servers.flatMap(({ tools }) => tools);
    const called = all.filter(({ tool, canonical }) => tool.name === name || canonical === name);
    const spelled = all.filter(({ server, tool }) => literalName(server.row.serverId, tool.name) === name);
    const having = called.length > 0 ? called : spelled;
    const shown = await Promise.all(having.map(({ server }) => this.upstreams.mayDiscover(ctx, server.row.serverId)));
    return having.filter((_, index) => shown[index]).sort(byAge);
  }

  /** Throws `not_found` when no server has it, and as UpstreamCalls.call does. */
  async call(ctx: CallContext, { tool, args, strategy = 'first', tasksOf }: ToolWish): Promise<ChosenAnswer> {
    const having = await this.find(ctx, tool);
    const usable = having.filter(({ quarantine }) => !quarantine);
    const targets = usable.length > 0 ? usable : having;
    if (targets.length === 0)
      throw new RialtoError('not_found', { message: `No server found for tool: ${tool.slice(0, 200)}` });
    const loads = await Promise.all(targets.map(({ server }) => this.lines.loadOf(ctx, server.row)));
    const target = targets[choose(loads, strategy, this.turn++)]!;
    const { canonical, server } = target;
    const tasks = tasksOf?.({ target, canonical, args });
    const result = await this.calls.call(ctx, { target, canonical, serverId: server.row.serverId, args, tasks });
    return { target, result };
  }
}

/** A server that came later takes no name from one that was there before (AE-72). */
function byAge({ server: { row: one } }: UpstreamTool, { server: { row: other } }: UpstreamTool): number {
  return one.createdAt.getTime() - other.createdAt.getTime();
}
