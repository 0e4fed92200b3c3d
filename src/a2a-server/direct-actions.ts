import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { matches } from '../protocol/name-pattern.js';
import { isJsonObject } from '../kernel/json.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { TaskSubmitService } from '../tasks/task-submit.service.js';
import type { UpstreamTool } from '../upstreams/registered-server.types.js';
import { UpstreamCalls } from '../upstreams/upstream-calls.js';
import { UpstreamsService } from '../upstreams/upstreams.service.js';

/** The method with which clients of agent-native call an action of an agent without a task. */
export const directAction = 'actions/invoke';

const maxName = 200;
const maxInputBytes = 65_536;

const Invocation = z.looseObject({
  name: z.string().min(1).max(maxName),
  input: z.record(z.string(), z.unknown()).default({}),
});

/**
 * Calls a tool of a published agent directly, without the agent and without a task (AN-58). Only tools that their
 * server marks as read-only can be called so, and only with a token that was issued for this gateway.
 */
@Injectable()
export class DirectActions {
  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly calls: UpstreamCalls,
    private readonly submits: TaskSubmitService,
  ) {}

  /**
   * Returns the name and the result of the tool. Throws `invalid_params`, `denied`, `not_found` for a name that is no
   * action of the agent, and as UpstreamCalls.callTool.
   */
  async invoke(ctx: CallContext, agent: PublishedAgent, params: unknown): Promise<JsonObject> {
    if (!ctx.isForAudience)
      throw new RialtoError('denied', {
        message: 'direct actions need a token that names this gateway as its audience; a key or bearer is not enough',
      });
    const { name, input } = readInvocation(params);
    if (ctx.org.id !== agent.org.id || !(await this.submits.mayUse(ctx, agent)))
      throw new RialtoError('denied', { message: 'you may not use this agent' });
    const target = await this.findAction(ctx, agent, name);
    const { canonical, server } = target;
    const result = await this.calls.callTool(ctx, { target, canonical, serverId: server.row.serverId, args: input });
    return { name, result };
  }

  private async findAction(ctx: CallContext, agent: PublishedAgent, name: string): Promise<UpstreamTool> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    const found = servers.flatMap(({ tools }) => tools).find((one) => one.canonical === name && belongsTo(agent, one));
    if (!found)
      throw new RialtoError('not_found', {
        message: `this agent has no action "${name}"`,
        hint: 'an action is a tool of the agent, named <server>__<tool>',
      });
    const { annotations } = found.tool;
    if (isJsonObject(annotations) && annotations.readOnlyHint === true) return found;
    throw new RialtoError('denied', {
      message: `"${name}" is not marked as read-only; send the agent a message instead`,
    });
  }
}

/** Throws `invalid_params` that says what is too long. */
function readInvocation(params: unknown): { name: string; input: JsonObject } {
  const read = Invocation.safeParse(params);
  if (!read.success) {
    const violations = read.error.issues.map(({ path, message }) => ({
      field: path.map(String).join('.') || 'params',
      description: message,
    }));
    throw new RialtoError('invalid_params', {
      message: `${violations[0]!.field}: ${violations[0]!.description}`,
      violations,
    });
  }
  const input = read.data.input as JsonObject;
  const bytes = Buffer.byteLength(JSON.stringify(input));
  if (bytes <= maxInputBytes) return { name: read.data.name, input };
  const description = `has ${bytes} bytes as JSON; at most ${maxInputBytes} are accepted`;
  throw new RialtoError('invalid_params', {
    message: `input ${description}`,
    violations: [{ field: 'input', description }],
  });
}

/** True for a tool that the agent itself works with. */
function belongsTo({ executor }: PublishedAgent, { canonical, server, tool }: UpstreamTool): boolean {
  if (executor.kind === 'llm') return matches(canonical, executor.tools ?? []);
  if (executor.kind !== 'mcp-tool' || executor.serverId !== server.row.serverId) return false;
  return executor.tool === undefined || executor.tool === tool.name;
}
