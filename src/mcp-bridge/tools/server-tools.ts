import { Injectable } from '@nestjs/common';
import { ToolTasks, type ToolKeeper } from '../../continuations/tool-tasks.js';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { upstreamName } from '../../protocol/mcp/tool-names.js';
import { UpstreamCalls, type UpstreamCall } from '../../upstreams/upstream-calls.js';
import type { ToolCatalogue, UpstreamEntry } from './tool-catalogue.js';
import { goingOn } from './mcp-task.js';
import type { ToolCall, ToolOutcome } from './tool-call.types.js';

/** Calls of the tools of MCP servers: each server says itself which arguments it wants. */
@Injectable()
export class ServerTools {
  constructor(
    private readonly calls: UpstreamCalls,
    private readonly tasks: ToolTasks,
  ) {}

  /** By either name. Throws `denied`, `not_found`, and what the call throws. @param goesOnAfterMs as in CallOptions. */
  call(
    ctx: CallContext,
    entry: UpstreamEntry | undefined,
    { name, args }: ToolCall,
    goesOnAfterMs: number | undefined,
  ): Promise<ToolOutcome> {
    const canonical = entry?.canonical ?? name;
    const serverId = entry?.target.server.row.serverId ?? serverOfName(name);
    const names = { canonical, legacyAlias: entry?.alias, calledAs: name };
    return this.called(ctx, { target: entry?.target, ...names, serverId, args }, name, goesOnAfterMs);
  }

  /** By the name that its server knows it by. Throws as `call` does. */
  callOwn(
    ctx: CallContext,
    serverId: string,
    byName: ToolCatalogue['byName'],
    { name, args }: ToolCall,
    goesOnAfterMs: number | undefined,
  ): Promise<ToolOutcome> {
    const canonical = upstreamName(serverId, name);
    const entry = byName.get(canonical);
    const target = entry?.kind === 'upstream' && entry.target.tool.name === name ? entry.target : undefined;
    const names = { canonical, legacyAlias: entry?.alias, calledAs: name };
    return this.called(ctx, { target, ...names, serverId, args }, name, goesOnAfterMs);
  }

  private async called(
    ctx: CallContext,
    call: UpstreamCall,
    name: string,
    goesOnAfterMs: number | undefined,
  ): Promise<ToolOutcome> {
    const { target } = call;
    const mayGoOn = target && goesOnAfterMs !== undefined;
    const keeper = mayGoOn ? this.tasks.keeperOf(ctx, { ...call, target }, goesOnAfterMs) : undefined;
    try {
      return outcomeOf(await this.calls.call(ctx, { ...call, tasks: keeper }), keeper);
    } catch (error) {
      throw call.target || RialtoError.from(error).code !== 'not_found' ? asCalled(error, name) : unknownTool(name);
    }
  }
}

/** What a call came to whose task was kept, if there was one. */
export function outcomeOf(result: JsonObject, keeper: Pick<ToolKeeper, 'goesOn'> | undefined): ToolOutcome {
  const task = keeper?.goesOn;
  return task ? { result: goingOn(task), goesOnAs: task.id } : { result };
}

/** `<serverId>__<tool>`: a skill has no such name. */
export function namesServer(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]*?__./.test(name);
}

/** Whose a tool or a prompt of an MCP server is, by its canonical name. */
export function serverOfName(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf('__')));
}

/** A denial names the tool as its caller did: a canonical name told for an alias would say that the tool exists. */
export function asCalled(thrown: unknown, name: string): RialtoError {
  const error = RialtoError.from(thrown);
  const { code, message, hint, data } = error;
  if (code !== 'denied' && code !== 'tool_changed') return error;
  return new RialtoError(code, { message, hint, data: { ...data, verb: name }, cause: error });
}

export function unknownTool(name: string): RialtoError {
  return new RialtoError('not_found', {
    message: `Unknown tool: ${name.slice(0, 200)}`,
    hint: 'tools/list shows what there is',
  });
}
