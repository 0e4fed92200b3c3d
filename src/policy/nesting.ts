import { Inject, Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { besideMs, NestedCalls } from './limits/nested-calls.js';

const retryAfterSeconds = 5;
/** Factor for the limit of tasks without a waiting caller: they are a backlog and not a circle. */
const backlogFactor = 20;

/**
 * Limits how many calls of one caller wait for one agent. It ends circles of agents that drop the lineage of a call
 * (abuse 37).
 */
@Injectable()
export class Nesting {
  /** Tasks of one caller at one agent that begin within this time of each other count once, in milliseconds. */
  readonly besideMs = besideMs;
  private readonly most: number;
  private readonly calls: NestedCalls;

  constructor(
    @Inject(SETTINGS) settings: Pick<Settings, 'RIALTO_MAX_NESTED_CALLS'>,
    private readonly metrics: Metrics,
  ) {
    this.most = settings.RIALTO_MAX_NESTED_CALLS;
    this.calls = new NestedCalls(this.most);
  }

  /** Counts a call in this process until the returned function is called. Throws `rate_limited`. */
  countNestedCall({ org, principal }: CallContext, agentId: string): () => void {
    const leave = this.calls.countNestedCall(`${org.id} ${callerOf(principal)} ${agentId}`, systemClock.elapsed());
    if (!leave) throw this.refusal(this.most);
    return leave;
  }

  /**
   * Checks the limit before a new task. Throws `rate_limited`.
   * @param open tasks that are under way, in all processes.
   * @param waits whether the caller waits for the new task.
   */
  requirePlace(open: number, waits: boolean): void {
    const most = waits ? this.most : this.most * backlogFactor;
    if (open >= most) throw this.refusal(most);
  }

  private refusal(most: number): RialtoError {
    this.metrics.limited.inc({ scope: 'nested calls' });
    return new RialtoError('rate_limited', {
      message: `${most} of your calls already wait for this agent, which is the maximum; they may wait for one another`,
      data: { reason: 'nested_calls', retryAfterSeconds },
    });
  }
}
