import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type ActId } from '../../kernel/ids.js';
import { storableText, type JsonObject } from '../../kernel/json.js';
import { VerbBus } from '../../kernel/verb-bus.js';
import { keptJson } from '../../platform/secrets/kept-json.js';
import { OrgService } from '../../policy/org.service.js';
import { toolOutput } from '../../protocol/a2a/remote/bridge-call.js';
import { canonicalName } from '../../protocol/mcp/tool-names.js';
import { cleartextRefusal } from '../../registry/agent-encryption.js';
import { RegistryService } from '../../registry/registry.service.js';
import { RoutingService } from '../../registry/routing.service.js';
import { A2AClientService } from '../a2a-client.service.js';
import type { SkillCall } from '../remote-call.types.js';
import { InvokeStep, type DispatchAnswer, type DispatchStep } from '../dispatch.types.js';
import { fillStep, workWish } from './steps.js';
import { restAfter } from '../../platform/turns.js';

/**
 * Runs steps of workflows: fills the templates, finds or chooses the agent, calls it, and returns the answer with the
 * agent.
 */
@Injectable()
export class DispatchService {
  constructor(
    private readonly registry: RegistryService,
    private readonly routing: RoutingService,
    private readonly client: A2AClientService,
    private readonly verbs: VerbBus,
    private readonly orgs: OrgService,
  ) {}

  /**
   * Throws `invalid_params` (templates, arguments), `not_found`, `url_not_allowed`, and the errors of
   * A2AClientService.invokeSkill.
   */
  async invoke(ctx: CallContext, step: InvokeStep): Promise<DispatchAnswer> {
    const { agentCardId, skillId, args, webhook_url: webhookUrl, thread } = fillStep(step, InvokeStep);
    await restAfter(args);
    this.client.requirePostable(webhookUrl, thread?.url);
    const { byId, bySlug } = await this.registry.snapshot(ctx.org.id);
    const agent = byId.get(agentCardId) ?? bySlug.get(agentCardId);
    const skill = agent?.card?.skills.find(({ id }) => id === skillId);
    if (!agent || !skill) {
      const name = canonicalName(agent?.row.slug ?? agentCardId, skillId);
      const isVisible = agent !== undefined && (await this.registry.mayDiscover(ctx, agent.row.slug));
      const message = isVisible ? 'the agent has no such skill' : 'no such agent';
      return this.refuseCall(ctx, name, args, new RialtoError('not_found', { message }));
    }
    const verb = canonicalName(agent.row.slug, skillId);
    const violations = await this.routing.violations(ctx, skill, args);
    if (violations.length > 0) {
      const message = 'the arguments break the input schema';
      return this.refuseCall(
        ctx,
        verb,
        args,
        new RialtoError('invalid_params', { message, violations }),
        agent.row.slug,
      );
    }
    const refusal = cleartextRefusal(agent, [{ data: args }]);
    if (refusal) return this.refuseCall(ctx, verb, args, refusal, agent.row.slug);
    const id = newId<ActId>();
    const call = {
      agent,
      skillId,
      verb,
      args,
      id,
      sessionId: `a2a-${agent.row.id}-${skillId}-${id}`,
      timeoutMs: agent.row.timeoutMs ?? (await this.orgs.toolSettings(ctx.org.id)).timeoutMs,
      dispatch: { workType: `explicit:${storableText(skillId, 200)}`, input: keptJson(args), isPlaced: false },
      webhookUrl,
      thread,
    };
    return this.callAgent(ctx, call, null);
  }

  /**
   * Throws `invalid_params`, `url_not_allowed`, `no_agent` with a reason for each agent, and the errors of
   * A2AClientService.invokeSkill.
   */
  async dispatch(ctx: CallContext, step: DispatchStep): Promise<DispatchAnswer> {
    const { webhook_url: webhookUrl, thread, ...wish } = workWish(step);
    this.client.requirePostable(webhookUrl, thread?.url);
    await restAfter(wish.args);
    const { dispatchId: id, agent, tool, seed, candidate, ...placed } = await this.routing.place(ctx, wish);
    const { sessionId, timeoutMs, workType, input } = placed;
    const dispatch = { workType, input, isPlaced: true };
    const { skillId, canonical: verb } = tool;
    const call = { agent, skillId, verb, args: wish.args, id, sessionId, timeoutMs, dispatch, webhookUrl, thread };
    return this.callAgent(ctx, call, { seed, score: candidate.score ?? 0 });
  }

  /** Calls the agent; an error names the dispatch and the agent. */
  private async callAgent(
    ctx: CallContext,
    call: SkillCall & { readonly id: ActId },
    chosen: DispatchAnswer['chosen'],
  ): Promise<DispatchAnswer> {
    const { id: dispatchId, skillId } = call;
    const { id, slug, name } = call.agent.row;
    try {
      const reply = await this.client.invokeSkill(ctx, call);
      const taskId = reply.kind === 'task' ? reply.taskId : null;
      return { dispatchId, agent: { id, slug, name }, skillId, taskId, output: toolOutput(reply), chosen };
    } catch (thrown) {
      const { code, message, hint, violations, data } = RialtoError.from(thrown);
      const facts = { ...data, dispatchId, agent: slug };
      throw new RialtoError(code, { message, hint, violations, data: facts, cause: thrown });
    }
  }

  /**
   * Decides and records a refusal like any call, so that a caller without permission does not learn which agents
   * exist.
   */
  private refuseCall(
    ctx: CallContext,
    verb: string,
    args: JsonObject,
    refusal: RialtoError,
    parent?: string,
  ): Promise<never> {
    const resource = { type: 'Skill', id: verb, parent } as const;
    const check = () => Promise.reject(refusal);
    return this.verbs.around({ ctx, verb, action: 'a2a_invoke', resource, args, check }, check);
  }
}
