import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { newTrace } from '../../platform/telemetry/trace-context.js';
import { Tracing } from '../../platform/telemetry/tracing.js';
import { AgentCredentials } from '../../registry/agent-credentials.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';
import { AgentHeaders, ownHeaders } from './agent-headers.js';
import { AgentRecheck } from '../../registry/agent-recheck.js';
import { Delegation } from './delegation.js';
import type { Deadline } from '../../kernel/abort.js';
import { RemoteCredentials } from './remote-credentials.js';
import type { RemoteHop } from '../transports/remote-hop.js';
import { namedFailure } from './unreached.js';

/** A hop without its endpoint, which is chosen last. */
export type OpenHop = Omit<RemoteHop, 'endpoint'>;

/**
 * Prepares hops to registered agents: headers, limits, a span around the work, and a recheck of an agent that could
 * not be reached.
 */
@Injectable()
export class RemoteAgents {
  constructor(
    private readonly sealed: AgentCredentials,
    private readonly credentials: RemoteCredentials,
    private readonly tracing: Tracing,
    private readonly recheck: AgentRecheck,
    private readonly delegation: Delegation,
  ) {}

  /** Throws `loop_detected` as `withConnection` does. */
  requireNoLoop(ctx: CallContext, { row }: RegisteredAgent, leftMs: number): void {
    this.delegation.onwards(ctx, row.url, leftMs);
  }

  /**
   * Runs the work inside a span; `signal` is added to the signal of the context. Throws `loop_detected` before
   * anything is sent.
   */
  async withConnection<T>(
    ctx: CallContext,
    { row }: RegisteredAgent,
    limits: VisitLimits,
    work: (hop: OpenHop) => Promise<T>,
  ): Promise<T> {
    const lineage = this.delegation.onwards(ctx, row.url, limits.deadline.leftMs);
    const traced = ctx.trace ? ctx : { ...ctx, trace: newTrace() };
    const span = this.tracing.startSpan('a2a_invoke', ctx.trace, {
      'rialto.agent': row.slug,
      'rialto.verb': limits.verb,
    });
    const headers = new AgentHeaders(
      row,
      {
        ...ownHeaders(traced, span.spanId, lineage),
        ...(limits.key !== undefined && { 'idempotency-key': limits.key }),
      },
      row.credential === null ? undefined : () => this.sealed.openCredential(row),
      this.credentials,
    );
    const signals = [...new Set([ctx.signal, limits.signal])].filter((signal) => signal !== undefined);
    try {
      const result = await work({ headers, deadline: limits.deadline, signals });
      span.end();
      return result;
    } catch (error) {
      const known = namedFailure(RialtoError.from(error), row.slug);
      span.end(known);
      if (known.code === 'remote_transport') this.recheck.soon(row, known);
      throw known;
    }
  }
}

export interface VisitLimits {
  readonly verb: string;
  /** The same for every try of one message, for agents that support idempotency keys. */
  readonly key?: string;
  readonly deadline: Deadline;
  readonly signal?: AbortSignal;
}
