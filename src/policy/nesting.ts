import { Inject, Injectable } from '@nestjs/common';
import { callerOf, type CallContext } from '../kernel/call-context.js';
import { systemClock } from '../kernel/clock.js';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { besideMs, NestedCalls } from './limits/nested-calls.js';

const retryAfterSeconds = 5;
/** Tasks that nobody waits for are a backlog rather than a circle, up to so many times the limit. */
const unwaited = 20;

/** How many calls of one caller may wait for one agent; ends circles of agents that drop the lineage of a call (abuse 37). */
@Injectable()
export class Nesting {
  /** Tasks of one caller at one agent that were begun so close to one another count once, in milliseconds. */
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

  /** While `call` runs it counts, in this process. Throws `rate_limited`. */
  async around<T>({ org, principal }: CallContext, agentId: string, call: () => Promise<T>): Promise<T> {
    const leave = this.calls.enter(`${org.id} ${callerOf(principal)} ${agentId}`, systemClock.elapsed());
    if (!leave) throw this.refusal(this.most);
    try {
      return await call();
    } finally {
      leave();
    }
  }

  /** Before one more task. Throws `rate_limited`. @param open those under way, in any process. @param waits whether its caller waits. */
  requireRoom(open: number, waits: boolean): void {
    const most = waits ? this.most : this.most * unwaited;
    if (open >= most) throw this.refusal(most);
  }

  private refusal(most: number): RialtoError {
    this.metrics.limited.inc({ scope: 'nested calls' });
    return new RialtoError('rate_limited', {
      message: `${most} calls of yours wait for this agent, perhaps for one another`,
      data: { reason: 'nested_calls', retryAfterSeconds },
    });
  }
}
