import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { cleartext, encrypted, refusedContent } from '../protocol/a2a/media-types.js';
import { matches } from '../protocol/name-pattern.js';
import { isJsonObject } from '../kernel/json.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { messageSubmission } from '../tasks/task-verbs.js';
import type { UpstreamTool } from '../upstreams/registered-server.types.js';
import { identityOf, UpstreamCalls } from '../upstreams/upstream-calls.js';
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
    private readonly verbs: VerbBus,
  ) {}

  /**
   * Returns the name and the result of the tool. Throws `invalid_params`, `denied`, `not_found` for a name that is no
   * action of the agent, and as UpstreamCalls.callTool.
   */
  async invoke(ctx: CallContext, agent: PublishedAgent, params: unknown): Promise<JsonObject> {
    if (!ctx.isForAudience)
      throw new RialtoError('denied', {
        message: 'direct actions need a token that names this gateway as its audience; a key or bearer is not enough',
        hint: 'POST /oauth/token exchanges an API key for such a token',
      });
    const { name, input } = readInvocation(params);
    if (ctx.org.id !== agent.org.id)
      throw new RialtoError('denied', { message: 'agents are called with a credential of their own org' });
    const target = await this.findAction(ctx, agent, name);
    const call = target && { target, canonical: target.canonical, serverId: target.server.row.serverId, args: input };
    const message = messageOf(agent, target, input);
    const requireCall = () => {
      requireReadable(agent, message);
      if (!call) throw noAction(name);
      requireReadOnly(call.target);
      return call;
    };
    const act = {
      ...messageSubmission(ctx, agent, message, { action: name, input }),
      check: () => void requireCall(),
      ...(call && { behind: () => Promise.resolve(identityOf(call.target.server)) }),
      ...(call && { workNeeds: () => this.calls.approvalFor(ctx, call) }),
    };
    return this.verbs.around(act, async (within) => {
      const allowed = requireCall();
      return { name, result: await this.calls.callTool(ctx, { ...allowed, within }) };
    });
  }

  private async findAction(ctx: CallContext, agent: PublishedAgent, name: string): Promise<UpstreamTool | undefined> {
    const { servers } = await this.upstreams.snapshotFor(ctx);
    return servers.flatMap(({ tools }) => tools).find((one) => one.canonical === name && belongsTo(agent, one));
  }
}

/** Returns the message that has the same effect: policies on messages decide about the action too. */
function messageOf({ executor }: PublishedAgent, target: UpstreamTool | undefined, input: JsonObject) {
  const skillId = executor.kind === 'mcp-tool' && executor.tool === undefined ? target?.tool.name : undefined;
  return { parts: [{ data: input }], ...(skillId !== undefined && { metadata: { skillId } }) };
}

/** Throws `content_type_not_supported` when the agent refuses such messages because of their encryption. */
function requireReadable(agent: PublishedAgent, { parts }: ReturnType<typeof messageOf>): void {
  const refused = refusedContent(parts, agent);
  if (refused === cleartext || refused === encrypted)
    throw new RialtoError('content_type_not_supported', { message: `this agent does not take ${refused}` });
}

function noAction(name: string): RialtoError {
  return new RialtoError('not_found', {
    message: `this agent has no action "${name}"`,
    hint: 'an action is a tool of the agent, named <server>__<tool>',
  });
}

function requireReadOnly({ canonical, tool: { annotations } }: UpstreamTool): void {
  if (isJsonObject(annotations) && annotations.readOnlyHint === true) return;
  throw new RialtoError('denied', {
    message: `"${canonical}" is not marked as read-only; send the agent a message instead`,
  });
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
