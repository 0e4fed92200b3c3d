import type { CallContext } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import type { VerbCall } from '../../kernel/verb-bus.js';
import type { RegisteredServer } from '../registered-server.types.js';

/**
 * Target of a call, by its canonical name. An unknown name is authorized too, so that a denied name gives the same
 * answer as an unknown one.
 */
export interface CallTarget {
  readonly canonical: string;
  readonly serverId: string;
  /** Portable name of a tool. */
  readonly legacyAlias?: string;
  /** Name that the caller used. */
  readonly calledAs?: string;
}

/** Builds the act of a call of a tool. */
export function toolAct(ctx: CallContext, target: CallTarget, args?: JsonObject): VerbCall {
  return targetAct(ctx, 'mcp_call', 'Tool', target, args);
}

/** Builds the act of a request for a prompt. */
export function promptAct(ctx: CallContext, target: CallTarget, args?: JsonObject): VerbCall {
  return targetAct(ctx, 'mcp_prompt', 'Prompt', target, args);
}

/** Builds the act of a message between a server and a caller: it is authorized like a call of its tool of that name. */
export function messageAct(ctx: CallContext, serverId: string, method: string): VerbCall {
  return toolAct(ctx, { canonical: `${serverId}__${method}`, serverId });
}

/** Builds the act of a read of a resource. */
export function readAct(ctx: CallContext, server: RegisteredServer | undefined, uri: string): VerbCall {
  const resource = { type: 'Resource', id: uri, parent: server?.row.serverId } as const;
  return { ctx, verb: uri, action: 'mcp_read', resource };
}

function targetAct(
  ctx: CallContext,
  action: 'mcp_call' | 'mcp_prompt',
  type: 'Tool' | 'Prompt',
  { canonical, serverId, legacyAlias, calledAs }: CallTarget,
  args: JsonObject | undefined,
): VerbCall {
  const resource = { type, id: canonical, parent: serverId };
  return { ctx, verb: canonical, action, resource, legacyAlias, calledAs, args };
}
