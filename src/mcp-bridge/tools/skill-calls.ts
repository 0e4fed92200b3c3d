import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError, type Violation } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import { VerbBus, type VerbCall } from '../../kernel/verb-bus.js';
import { SchemaChecks } from '../../platform/schemas/schema-checks.js';
import { OrgService } from '../../policy/org.service.js';
import { toolOutput } from '../../protocol/a2a/remote/bridge-call.js';
import { invalidArguments, toolResult, type ToolResult } from '../../protocol/mcp/tool-result.js';
import type { SkillEntry } from './tool-catalogue.js';
import type { ToolCall, ToolOutcome } from './tool-call.types.js';
import { asCalled, unknownTool } from './tool-errors.js';

/** Calls the skills of registered agents as tools. */
@Injectable()
export class SkillCalls {
  constructor(
    private readonly client: A2AClientService,
    private readonly orgs: OrgService,
    private readonly schemas: SchemaChecks,
    private readonly verbs: VerbBus,
  ) {}

  /** Calls a skill by either name of its tool. Throws RialtoError; bad arguments are a result. */
  async callSkill(ctx: CallContext, entry: SkillEntry, call: ToolCall): Promise<ToolOutcome> {
    const { name, args } = call;
    const { agent, skillId, canonical, inputSchema } = entry;
    const found = this.schemas.violations(ctx.org.id, inputSchema, args);
    const violations = found instanceof Promise ? await found : found;
    if (violations.length > 0) return { result: await this.refuseArguments(ctx, entry, call, violations) };
    const invoked = this.client.invokeSkill(ctx, {
      agent,
      skillId,
      verb: canonical,
      calledAs: name,
      args,
      sessionId: `a2a-${agent.row.id}-${skillId}-${newId()}`,
      timeoutMs: agent.row.timeoutMs ?? (await this.orgs.toolSettings(ctx.org.id)).timeoutMs,
      signal: ctx.signal,
    });
    const reply = await invoked.catch((error: unknown) => Promise.reject(asCalled(error, name)));
    // A reply that is still working was handed over: it is now a task of the gateway.
    const isRunning = reply.kind === 'task' && reply.state === 'TASK_STATE_WORKING';
    return { result: toolResult(toolOutput(reply)), ...(isRunning && { goesOnAs: reply.taskId }) };
  }

  /**
   * Refuses an unknown name like a call of a skill. The policy decision on the name comes first, so that the answer for
   * a denied name does not reveal whether the tool exists (decisions: MCP).
   */
  refuseUnknown(ctx: CallContext, { name, args }: ToolCall): Promise<never> {
    const refuse = () => Promise.reject(unknownTool(name));
    return this.verbs.around({ ...invocation(ctx, name, undefined, args), check: refuse }, refuse);
  }

  /**
   * Refuses bad arguments with a decision and a record like any call, so that a caller without permission learns
   * nothing about the schema.
   */
  private async refuseArguments(
    ctx: CallContext,
    entry: SkillEntry,
    { name, args }: ToolCall,
    violations: readonly Violation[],
  ): Promise<ToolResult> {
    const refused = new RialtoError('invalid_params', { message: 'the arguments break the input schema', violations });
    try {
      const names = { legacyAlias: entry.alias, calledAs: name };
      const refuse = () => Promise.reject(refused);
      return await this.verbs.around(
        { ...invocation(ctx, entry.canonical, entry, args), ...names, check: refuse },
        refuse,
      );
    } catch (error) {
      if (error === refused) return invalidArguments(violations);
      throw asCalled(error, name);
    }
  }
}

function invocation(ctx: CallContext, verb: string, entry: SkillEntry | undefined, args: JsonObject): VerbCall {
  return {
    ctx,
    verb,
    action: 'a2a_invoke',
    resource: { type: 'Skill', id: verb, parent: entry?.agent.row.slug },
    args,
  };
}
