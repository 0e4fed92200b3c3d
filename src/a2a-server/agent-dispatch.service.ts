import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import type { JsonObject } from '../kernel/json.js';
import type { DecodedOperation, Operation, SendParams } from '../protocol/a2a/operations.js';
import { OwnRouting, type OwnCandidate } from '../registry/own-routing.service.js';
import { PublishedService } from '../registry/published.service.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { TaskService } from '../tasks/task.service.js';
import { noSuchTask, TaskSubmitService } from '../tasks/task-submit.service.js';
import { noAgentNamed } from './visit.service.js';

const maxDescription = 8_000;

/** Whose a request is that names no agent. */
export interface Addressee {
  readonly agent: PublishedAgent;
  /** What the metadata of a task says of the choice; absent where there was none to make. */
  readonly facts?: JsonObject;
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
  async addressee(
    ctx: CallContext,
    { operation, version }: DecodedOperation,
    headerKey: string | undefined,
  ): Promise<Addressee> {
    const taskId = taskOf(operation);
    if (taskId !== undefined) return { agent: await this.ownerOf(ctx, taskId) };
    const { agents } = await this.published.snapshot(ctx.org.id);
    const enabled = agents.filter((agent) => agent.enabled);
    const isMessage = operation.name === 'SendMessage' || operation.name === 'SendStreamingMessage';
    if (!isMessage || enabled.length === 0) throw noAgentNamed();
    const { params } = operation;
    const key = headerKey ?? params.idempotencyKey;
    const repeated = key === undefined ? undefined : await this.submits.agentOfKey(ctx, key);
    const known = enabled.find(({ id }) => id === repeated);
    if (known) return { agent: known };
    const wish = wishOf(params);
    const begun = await this.submits.agentOfContext(ctx, params.message.contextId);
    const partner = enabled.find(({ id }) => id === begun);
    if (partner)
      return this.routing.choose(ctx.org.id, wish, [{ agent: partner }], {
        reason: 'an earlier message of its context went to it',
      });
    const isAllowed = await Promise.all(enabled.map((one) => this.submits.mayUse(ctx, one)));
    // Who may send to nobody is told so by the policy, as if the agent had been named.
    const isAllowedAny = isAllowed.includes(true);
    const candidates = enabled.map((one, index): OwnCandidate => {
      if (!one.versions.includes(version)) return { agent: one, excluded: `it does not speak A2A ${version}` };
      if (operation.name === 'SendStreamingMessage' && !one.streaming)
        return { agent: one, excluded: 'it does not stream' };
      if (isAllowedAny && !isAllowed[index]) return { agent: one, excluded: 'you may not send to it' };
      return { agent: one };
    });
    return this.routing.choose(ctx.org.id, wish, candidates, key === undefined ? {} : { seed: seedOf(ctx, key) });
  }

  private async ownerOf(ctx: CallContext, taskId: string): Promise<PublishedAgent> {
    const agent = await this.published.byId((await this.tasks.visible(ctx, undefined, taskId)).agentId);
    if (!agent) throw noSuchTask(taskId);
    return agent;
  }
}

/** The task that an operation is about. */
function taskOf({ params }: Operation): string | undefined {
  if ('message' in params) return params.message.taskId;
  if ('taskId' in params) return params.taskId;
  return 'id' in params ? params.id : undefined;
}

/** What a message is about is what it says; a skill that it names is required. */
function wishOf({ message: { parts, metadata } }: SendParams) {
  const skillId = typeof metadata?.skillId === 'string' ? metadata.skillId : undefined;
  const description = parts.flatMap(({ text }) => text ?? []).join(' ');
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
