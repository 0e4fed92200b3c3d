import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import type { JsonObject } from '../kernel/json.js';
import { refusedContent } from '../protocol/a2a/media-types.js';
import type { DecodedOperation, Operation, SendParams } from '../protocol/a2a/request/operations.js';
import { OwnRouting, type OwnCandidate } from '../registry/own-routing.js';
import { PublishedService } from '../registry/published.service.js';
import { namedSkill, type PublishedAgent } from '../registry/published.types.js';
import { EarlierMessages } from '../tasks/earlier-messages.js';
import { TaskService } from '../tasks/task.service.js';
import { TaskSubmitService } from '../tasks/task-submit.service.js';
import { noSuchTask } from '../tasks/task.types.js';
import { noAgentNamed } from './a2a-requests.js';

const maxDescription = 8_000;

/** The agent chosen for a request that names none. */
export interface Addressee {
  readonly agent: PublishedAgent;
  /** Metadata of the task about the choice; absent when there was no choice. */
  readonly facts?: JsonObject;
  /** Operation to run at that agent. */
  readonly decoded: DecodedOperation;
}

/** Chooses the agent for requests that name none, in orgs without a default agent (AN-89). */
@Injectable()
export class AgentDispatch {
  constructor(
    private readonly published: PublishedService,
    private readonly routing: OwnRouting,
    private readonly tasks: TaskService,
    private readonly submits: TaskSubmitService,
    private readonly earlier: EarlierMessages,
  ) {}

  /**
   * Returns the agent for an operation. An operation on a task goes to the agent of that task. A message that begins
   * a task goes to the agent that an earlier message with the same key or context went to, else to the agent that
   * suits it best. Throws `task_not_found`, `no_agent`, and `not_found` for an operation without a task and for an
   * org without agents.
   */
  async chooseAddressee(
    ctx: CallContext,
    decoded: DecodedOperation,
    headerKey: string | undefined,
  ): Promise<Addressee> {
    const { operation } = decoded;
    const taskId = taskIdOf(operation);
    if (taskId !== undefined) return { agent: await this.agentOfTask(ctx, taskId), decoded };
    const { agents } = await this.published.snapshot(ctx.org.id);
    const enabled = agents.filter((agent) => agent.enabled);
    if (!isMessage(operation) || enabled.length === 0) throw noAgentNamed();
    const named = ofNamedSkill(decoded, enabled);
    return named ?? { ...(await this.chooseAgent(ctx, decoded, operation, headerKey, enabled)), decoded };
  }

  private async chooseAgent(
    ctx: CallContext,
    { version }: DecodedOperation,
    { name, params }: MessageOperation,
    headerKey: string | undefined,
    enabled: readonly PublishedAgent[],
  ): Promise<Omit<Addressee, 'decoded'>> {
    const key = headerKey ?? params.idempotencyKey;
    const repeated = key === undefined ? undefined : await this.earlier.agentOfKey(ctx, key);
    const known = enabled.find(({ id }) => id === repeated);
    if (known) return { agent: known };
    const wanted = wantedBy(params);
    const previousId = await this.earlier.agentOfContext(ctx, params.message.contextId);
    const refusedBy = (one: PublishedAgent): string | undefined => refusedContent(params.message.parts, one);
    // When no agent accepts the content, the chosen agent refuses it.
    const isAccepted = enabled.some((one) => refusedBy(one) === undefined);
    const previousAgent = enabled.find((one) => one.id === previousId && (!isAccepted || refusedBy(one) === undefined));
    if (previousAgent)
      return this.routing.choose(ctx.org.id, wanted, [{ agent: previousAgent }], {
        reason: 'an earlier message of its context went to it',
      });
    const isAllowed = await Promise.all(enabled.map((one) => this.submits.mayUse(ctx, one)));
    // A caller that may use no agent gets the refusal of the policy, as if it had named the agent.
    const isAllowedAny = isAllowed.includes(true);
    const candidates = enabled.map((one, index): OwnCandidate => {
      if (!one.versions.includes(version)) return { agent: one, excluded: `it does not speak A2A ${version}` };
      if (name === 'SendStreamingMessage' && !one.streaming) return { agent: one, excluded: 'it does not stream' };
      const refused = isAccepted ? refusedBy(one) : undefined;
      if (refused !== undefined) return { agent: one, excluded: `it does not take ${refused}` };
      if (isAllowedAny && !isAllowed[index]) return { agent: one, excluded: 'you may not send to it' };
      return { agent: one };
    });
    return this.routing.choose(ctx.org.id, wanted, candidates, key === undefined ? {} : { seed: seedOf(ctx, key) });
  }

  /**
   * Returns another agent of the org's shared cards for a request to the door of the default agent, which these cards
   * list. The request names a skill that the default agent does not have, or a task that does not belong to it.
   * Undefined: the request is for the default agent. Throws `task_not_found`.
   */
  async findListedAgent(
    ctx: CallContext,
    standard: PublishedAgent,
    decoded: DecodedOperation,
  ): Promise<Addressee | undefined> {
    const { operation } = decoded;
    const listed = await this.published.listedAgents(ctx.org.id);
    const others = listed.filter(({ id }) => id !== standard.id);
    if (others.length === 0) return undefined;
    const taskId = taskIdOf(operation);
    if (taskId !== undefined) {
      const { agentId } = await this.tasks.visible(ctx, undefined, taskId);
      const agent = others.find(({ id }) => id === agentId);
      return agent && { agent, decoded };
    }
    const skillId = isMessage(operation) ? skillOf(operation.params) : undefined;
    if (skillId === undefined || hasSkill(standard, skillId)) return undefined;
    const agent = others.find((one) => hasSkill(one, skillId));
    return agent ? { agent, decoded } : ofNamedSkill(decoded, listed);
  }

  private async agentOfTask(ctx: CallContext, taskId: string): Promise<PublishedAgent> {
    const agent = await this.published.byId((await this.tasks.visible(ctx, undefined, taskId)).agentId);
    if (!agent) throw noSuchTask(taskId);
    return agent;
  }
}

type MessageOperation = Extract<Operation, { name: 'SendMessage' | 'SendStreamingMessage' }>;

function isMessage(operation: Operation): operation is MessageOperation {
  return operation.name === 'SendMessage' || operation.name === 'SendStreamingMessage';
}

/**
 * Resolves a skill name that contains the name of its agent, as in the shared card of several agents. Returns that
 * agent, and the message with the plain id of the skill.
 */
function ofNamedSkill(decoded: DecodedOperation, agents: readonly PublishedAgent[]): Addressee | undefined {
  const { operation } = decoded;
  const asked = isMessage(operation) ? skillOf(operation.params) : undefined;
  if (!isMessage(operation) || asked === undefined || agents.some((one) => hasSkill(one, asked))) return undefined;
  for (const agent of agents) {
    const skillId = agent.skills.find(({ id }) => namedSkill(agent.name, id) === asked)?.id;
    if (skillId === undefined) continue;
    const { message } = operation.params;
    const params = { ...operation.params, message: { ...message, metadata: { ...message.metadata, skillId } } };
    return { agent, decoded: { ...decoded, operation: { ...operation, params } } };
  }
  return undefined;
}

function hasSkill({ skills }: PublishedAgent, skillId: string): boolean {
  return skills.some(({ id }) => id === skillId);
}

function skillOf({ message: { metadata } }: SendParams): string | undefined {
  return typeof metadata?.skillId === 'string' ? metadata.skillId : undefined;
}

/** Id of the task that an operation is about. */
function taskIdOf({ params }: Operation): string | undefined {
  if ('message' in params) return params.message.taskId;
  if ('taskId' in params) return params.taskId;
  return 'id' in params ? params.id : undefined;
}

/**
 * Facts that the routing compares with agents: the text of the message, and the skill that it names, which is
 * required.
 */
function wantedBy(params: SendParams) {
  const skillId = skillOf(params);
  const description = params.message.parts.flatMap(({ text }) => text ?? []).join(' ');
  return {
    workType: skillId ?? '',
    description: description.slice(0, maxDescription),
    requiredSkills: skillId === undefined ? [] : [skillId],
  };
}

/** Seed for the choice. Two concurrent messages with one key are the same message: both go to the same agent. */
function seedOf({ org, principal }: CallContext, key: string): number {
  const text = `${org.id}\n${principal.kind}\n${principal.id}\n${key}`;
  return Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16);
}
