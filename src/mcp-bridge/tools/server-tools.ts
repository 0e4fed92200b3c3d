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

/** Calls the tools of MCP servers; each server checks its arguments itself. */
@Injectable()
export class ServerTools {
  constructor(
    private readonly calls: UpstreamCalls,
    private readonly tasks: ToolTasks,
  ) {}

  /**
   * Calls a tool by either name. Throws `denied`, `not_found`, and the errors of the call.
   * @param goesOnAfterMs as in CallOptions.
   */
  call(
    ctx: CallContext,
    entry: UpstreamEntry | undefined,
    { name, args }: ToolCall,
    goesOnAfterMs: number | undefined,
  ): Promise<ToolOutcome> {
    const canonical = entry?.canonical ?? name;
    const serverId = entry?.target.server.row.serverId ?? serverOfName(name);
    const names = { canonical, legacyAlias: entry?.alias, calledAs: name };
    return this.callTool(ctx, { target: entry?.target, ...names, serverId, args }, name, goesOnAfterMs);
  }

  /** Calls a tool by the name that its server uses. Throws as `call` does. */
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
    return this.callTool(ctx, { target, ...names, serverId, args }, name, goesOnAfterMs);
  }

  private async callTool(
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

/** Returns the outcome of a call, with its stored task if there is one. */
export function outcomeOf(result: JsonObject, keeper: Pick<ToolKeeper, 'goesOn'> | undefined): ToolOutcome {
  const task = keeper?.goesOn;
  return task ? { result: goingOn(task), goesOnAs: task.id } : { result };
}

/** True for a name of the form `<serverId>__<tool>`; a skill never has such a name. */
export function namesServer(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]*?__./.test(name);
}

/** Returns the server in the canonical name of a tool or prompt. */
export function serverOfName(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf('__')));
}

/**
 * Returns an error with the name that the caller used: the canonical name would reveal to a denied caller that the
 * tool exists.
 */
export function asCalled(thrown: unknown, name: string): RialtoError {
  const error = RialtoError.from(thrown);
  const { code, message, hint, data } = error;
  if (code !== 'denied' && code !== 'tool_changed') return error;
  return new RialtoError(code, { message, hint, data: { ...data, verb: name }, cause: error });
}

export function unknownTool(name: string): RialtoError {
  return new RialtoError('not_found', {
    message: `Unknown tool: ${name.slice(0, 200)}`,
    hint: 'tools/list lists the tools',
  });
}
