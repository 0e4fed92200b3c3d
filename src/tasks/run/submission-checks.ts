import { Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { wrongPayload } from '../../protocol/a2a/encrypted-parts.js';
import { cleartext, encrypted, refusedContent } from '../../protocol/a2a/media-types.js';
import type { Part } from '../../protocol/a2a/model.js';
import { TrustQuotas } from '../../policy/trust-quotas.js';
import type { SendParams } from '../../protocol/a2a/request/operations.js';
import { PublishedService } from '../../registry/published.service.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { chooseRoute } from './route-choice.js';
import { TaskExecutors } from '../task-executors.js';
import { placeOf } from '../task-verbs.js';
import type { StoredTask } from '../task.types.js';
import { MessageChecks } from './message-checks.js';
import { TaskQuota } from './task-quota.js';

/** Checks that a message must pass before anything of it is stored. */
@Injectable()
export class SubmissionChecks {
  constructor(
    private readonly executors: TaskExecutors,
    private readonly quota: TaskQuota,
    private readonly published: PublishedService,
    private readonly messages: MessageChecks,
    private readonly trust: TrustQuotas,
  ) {}

  /**
   * Checks a message that is about to be stored or answered. Throws `loop_detected`, `content_type_not_supported`,
   * `too_large`, and `unprocessable` for a message of an agent to itself.
   */
  requireAcceptable(ctx: CallContext, agent: PublishedAgent, params: SendParams): Promise<void> | undefined {
    this.requireNoLoop(ctx, agent);
    // The route of a task that continues is known only with its first message.
    if (agent.executor.kind !== 'routes' || params.message.taskId === undefined)
      this.requireAcceptedContent(agent, params.message.parts);
    this.messages.requireSize(params);
    return ctx.principal.kind === 'agent' ? this.messages.requireOther(ctx, agent) : undefined;
  }

  /** Checks a message for a task that continues. Throws `content_type_not_supported`. */
  requireAcceptableFor(agent: PublishedAgent, { history }: StoredTask, parts: readonly Part[]): void {
    const { executor } = agent;
    if (executor.kind !== 'routes') return;
    this.requireAcceptedContent({ ...agent, executor: chooseRoute(executor, history) }, parts);
  }

  /** Counts a message of an org while it is stored, when quotas are on. Throws `rate_limited` and `denied`. */
  admitMessage<Stored>({ org }: CallContext, store: () => Promise<Stored | undefined>): Promise<Stored | undefined> {
    return this.trust.admitMessage(org.id, store);
  }

  /** Refuses a call to an agent that already waits for the result of this call chain (AN-61). */
  private requireNoLoop({ lineage }: CallContext, agent: PublishedAgent): void {
    if (lineage?.path.includes(placeOf(agent)))
      throw new RialtoError('loop_detected', { message: 'this agent is already at work behind this call' });
  }

  /**
   * Throws `content_type_not_supported` for content that the agent does not accept. For cleartext, `data.keys` is the
   * address of the keys to encrypt with (RI-06).
   */
  private requireAcceptedContent(agent: PublishedAgent, parts: readonly Part[]): void {
    const refused = refusedContent(parts, agent);
    if (refused === undefined) return;
    const wrong = refused === cleartext ? wrongPayload(parts) : undefined;
    throw new RialtoError('content_type_not_supported', {
      message: `this agent does not take ${refused}${wrong === undefined ? '' : `: ${wrong}`}`,
      ...this.explanationOf(refused, agent),
    });
  }

  /**
   * Limits nested tasks of agents that call other agents: such a call can create a task in this gateway again, and this
   * task may wait for it. Throws `rate_limited`.
   */
  async requireNoNest({ org, principal }: CallContext, agent: PublishedAgent, waits: boolean): Promise<void> {
    if (this.executors.ofKind(agent.executor.kind).leavesWork)
      await this.quota.requireNoNest(org.id, agent.id, callerOf(principal), waits);
  }

  private explanationOf(refused: string, agent: PublishedAgent) {
    if (refused === cleartext)
      return {
        data: { reason: 'cleartext', keys: this.published.keysUrlOf(agent) },
        hint: 'send data parts with encrypted_payload, encrypted with the keys of the agent (docs/encryption.md)',
      };
    if (refused === encrypted)
      return {
        data: { reason: 'encrypted', executor: agent.executor.kind },
        hint: 'send it unencrypted: the gateway does the work of this agent itself and has no key',
      };
    return { data: { mediaType: refused, accepted: agent.inputModes } };
  }
}
