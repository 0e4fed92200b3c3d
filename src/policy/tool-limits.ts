import { Inject, Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { storableText } from '../kernel/json.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import { Nesting } from './nesting.js';
import { ToolCallsStore } from './limits/tool-calls.store.js';

const longest = 300;

/**
 * Limits how often each caller may call each tool, over all processes, and how many of its calls may wait. Without a
 * limit nothing is counted.
 */
@Injectable()
@Sweeps('tool.calls')
export class ToolLimits implements Sweeper {
  readonly everyMs = 600_000;

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: ToolCallsStore,
    private readonly metrics: Metrics,
    private readonly nesting: Nesting,
  ) {}

  /**
   * Counts one call and reports the remaining calls to the caller. Throws `rate_limited` with the seconds to wait.
   * @param perMinute limit of this tool; undefined or null: the limit of the deployment.
   */
  async countToolCall(ctx: CallContext, tool: string, perMinute?: number | null): Promise<void> {
    const limit = perMinute ?? this.settings.RIALTO_RATE_LIMIT_TOOL;
    if (limit === 0) return;
    const { org, principal } = ctx;
    const caller = storableText(`${principal.kind}:${principal.id}`, longest);
    const { calls, secondsLeft } = await this.store.countCallOfMinute(org.id, caller, storableText(tool, longest));
    ctx.tellLimit?.({ limit, remaining: Math.max(0, limit - calls), secondsLeft });
    if (calls <= limit) return;
    this.metrics.limited.inc({ scope: 'tool' });
    throw new RialtoError('rate_limited', {
      message: `this tool may be called ${limit} times a minute`,
      data: { retryAfterSeconds: secondsLeft, limit },
    });
  }

  /** Runs a call of an agent or MCP server and counts it until it ends. Throws `rate_limited`. */
  async around<T>(ctx: CallContext, callee: string, call: () => Promise<T>): Promise<T> {
    const leave = this.countCall(ctx, callee);
    try {
      return await call();
    } finally {
      leave();
    }
  }

  /** Counts a call of an agent or MCP server until the returned function is called. Throws `rate_limited`. */
  countCall(ctx: CallContext, callee: string): () => void {
    return this.nesting.countNestedCall(ctx, callee);
  }

  sweep(): Promise<void> {
    return this.store.dropOld();
  }
}
