import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import type { JsonObject } from '../kernel/json.js';
import { refusedContent } from '../protocol/a2a/media-types.js';
import type { DecodedOperation, Operation, SendParams } from '../protocol/a2a/request/operations.js';
import { OwnRouting, type OwnCandidate } from '../registry/own-routing.js';
import { PublishedService } from '../registry/published.service.js';
import { namedSkill, type PublishedAgent } from '../registry/published.types.js';
import { TaskService } from '../tasks/task.service.js';
import { noSuchTask, TaskSubmitService } from '../tasks/task-submit.service.js';
import { noAgentNamed } from './a2a-requests.js';

const maxDescription = 8_000;

/** Whose a request is that names no agent. */
export interface Addressee {
  readonly agent: PublishedAgent;
  /** What the metadata of a task says of the choice; absent where there was none to make. */
  readonly facts?: JsonObject;
  /** The operation to run at that agent. */
  readonly decoded: DecodedOperation;
}

/** Finds the agent of requests at the doors that name none, for orgs without a default agent (AN-89). */
@Injectable()
export class AgentDispatch {
  constructor(
    private readonly published: PublishedService,
    private readonly routing: OwnRouting,
    private readonly tasks: TaskService,
    private readonly submits: TaskSubmitService,
  ) {}

  /**
   * What is about a task goes to the agent of that task; a message that begins one to whoever suits it best, or to whom an earlier one of
   * its context or its key went. Throws `task_not_found`, `no_agent`, and `not_found` for what is about no task and for an org without agents.
   */
  async addressee(ctx: CallContext, decoded: DecodedOperation, headerKey: string | undefined): Promise<Addressee> {
    const { operation } = decoded;
    const taskId = taskOf(operation);
    if (taskId !== undefined) return { agent: await this.ownerOf(ctx, taskId), decoded };
    const { agents } = await this.published.snapshot(ctx.org.id);
    const enabled = agents.filter((agent) => agent.enabled);
    if (!isMessage(operation) || enabled.length === 0) throw noAgentNamed();
    const named = ofNamedSkill(decoded, enabled);
    return named ?? { ...(await this.choose(ctx, decoded, operation, headerKey, enabled)), decoded };
  }

  private async choose(
    ctx: CallContext,
    { version }: DecodedOperation,
    { name, params }: MessageOperation,
    headerKey: string | undefined,
    enabled: readonly PublishedAgent[],
  ): Promise<Omit<Addressee, 'decoded'>> {
    const key = headerKey ?? params.idempotencyKey;
    const repeated = key === undefined ? undefined : await this.submits.agentOfKey(ctx, key);
    const known = enabled.find(({ id }) => id === repeated);
    if (known) return { agent: known };
    const wish = wishOf(params);
    const begun = await this.submits.agentOfContext(ctx, params.message.contextId);
    const refusedBy = (one: PublishedAgent): string | undefined => refusedContent(params.message.parts, one);
    // When no agent takes the message, the chosen one says so.
    const isTaken = enabled.some((one) => refusedBy(one) === undefined);
    const partner = enabled.find((one) => one.id === begun && (!isTaken || refusedBy(one) === undefined));
    if (partner)
      return this.routing.choose(ctx.org.id, wish, [{ agent: partner }], {
        reason: 'an earlier message of its context went to it',
      });
    const isAllowed = await Promise.all(enabled.map((one) => this.submits.mayUse(ctx, one)));
    // Who may send to nobody is told so by the policy, as if the agent had been named.
    const isAllowedAny = isAllowed.includes(true);
    const candidates = enabled.map((one, index): OwnCandidate => {
      if (!one.versions.includes(version)) return { agent: one, excluded: `it does not speak A2A ${version}` };
      if (name === 'SendStreamingMessage' && !one.streaming) return { agent: one, excluded: 'it does not stream' };
      const refused = isTaken ? refusedBy(one) : undefined;
      if (refused !== undefined) return { agent: one, excluded: `it does not take ${refused}` };
      if (isAllowedAny && !isAllowed[index]) return { agent: one, excluded: 'you may not send to it' };
      return { agent: one };
    });
    return this.routing.choose(ctx.org.id, wish, candidates, key === undefined ? {} : { seed: seedOf(ctx, key) });
  }

  /**
   * The agent of a server in `mcp.config.json` that a request is for, though it came to the door of the default agent: it names a skill which
   * that agent does not have, or a task which is not that agent's. Undefined: it is for the default agent. Throws `task_not_found`.
   */
  async toolAgent(
    ctx: CallContext,
    standard: PublishedAgent,
    decoded: DecodedOperation,
  ): Promise<Addressee | undefined> {
    const { operation } = decoded;
    const others = (await this.published.toolAgents(ctx.org)).filter(({ id }) => id !== standard.id);
    if (others.length === 0) return undefined;
    const taskId = taskOf(operation);
    if (taskId !== undefined) {
      const { agentId } = await this.tasks.visible(ctx, undefined, taskId);
      const agent = others.find(({ id }) => id === agentId);
      return agent && { agent, decoded };
    }
    const skillId = isMessage(operation) ? skillOf(operation.params) : undefined;
    if (skillId === undefined || has(standard, skillId)) return undefined;
    const agent = others.find((one) => has(one, skillId));
    return agent ? { agent, decoded } : ofNamedSkill(decoded, others);
  }

  private async ownerOf(ctx: CallContext, taskId: string): Promise<PublishedAgent> {
    const agent = await this.published.byId((await this.tasks.visible(ctx, undefined, taskId)).agentId);
    if (!agent) throw noSuchTask(taskId);
    return agent;
  }
}

type MessageOperation = Extract<Operation, { name: 'SendMessage' | 'SendStreamingMessage' }>;

function isMessage(operation: Operation): operation is MessageOperation {
  return operation.name === 'SendMessage' || operation.name === 'SendStreamingMessage';
}

/** A message for a skill that a card of several agents tells apart by the name of its agent: it is for that one, and its skill has its own id. */
function ofNamedSkill(decoded: DecodedOperation, agents: readonly PublishedAgent[]): Addressee | undefined {
  const { operation } = decoded;
  const asked = isMessage(operation) ? skillOf(operation.params) : undefined;
  if (!isMessage(operation) || asked === undefined || agents.some((one) => has(one, asked))) return undefined;
  for (const agent of agents) {
    const skillId = agent.skills.find(({ id }) => namedSkill(agent.name, id) === asked)?.id;
    if (skillId === undefined) continue;
    const { message } = operation.params;
    const params = { ...operation.params, message: { ...message, metadata: { ...message.metadata, skillId } } };
    return { agent, decoded: { ...decoded, operation: { ...operation, params } } };
  }
  return undefined;
}

function has({ skills }: PublishedAgent, skillId: string): boolean {
  return skills.some(({ id }) => id === skillId);
}

function skillOf({ message: { metadata } }: SendParams): string | undefined {
  return typeof metadata?.skillId === 'string' ? metadata.skillId : undefined;
}

/** The task that an operation is about. */
function taskOf({ params }: Operation): string | undefined {
  if ('message' in params) return params.message.taskId;
  if ('taskId' in params) return params.taskId;
  return 'id' in params ? params.id : undefined;
}

/** What a message is about is what it says; a skill that it names is required. */
function wishOf(params: SendParams) {
  const skillId = skillOf(params);
  const description = params.message.parts.flatMap(({ text }) => text ?? []).join(' ');
  return {
    workType: skillId ?? '',
    description: description.slice(0, maxDescription),
    requiredSkills: skillId === undefined ? [] : [skillId],
  };
}

/** Two messages of one key at once are one message: both go the same way. */
function seedOf({ org, principal }: CallContext, key: string): number {
  const text = `${org.id}\n${principal.kind}\n${principal.id}\n${key}`;
  return Number.parseInt(hash('sha256', text, 'hex').slice(0, 8), 16);
}
