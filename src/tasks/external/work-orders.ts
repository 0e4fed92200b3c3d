import { Inject, Injectable } from '@nestjs/common';
import type { Lineage, Principal } from '../../kernel/call-context.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { lineageHeader, LineageSeal } from '../../platform/secrets/lineage.js';
import { newTrace, traceHeaders } from '../../platform/telemetry/trace-context.js';
import { depthHeader } from '../../policy/context.service.js';
import type { Message } from '../../protocol/a2a/model.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { mailboxWaitMs } from '../storage/execution-times.js';
import { ExecutionTokens } from '../execution-tokens.js';
import { placeOf } from '../task-verbs.js';
import { taskView, type StoredTask } from '../task.types.js';

/** Most earlier messages in an order. */
export const maxHistory = 50;

/** A task for a service or a worker. */
export interface HandedTask {
  readonly agent: Pick<PublishedAgent, 'id' | 'org'>;
  readonly task: StoredTask;
  readonly message: Message;
  /** Messages of earlier tasks of the context, oldest first. */
  readonly earlier: readonly Message[];
  /** The caller of the task, with its current groups and role. */
  readonly principal: Principal;
  /** Epoch of the lease; absent for a service, which has the task until it ends. */
  readonly epoch?: number;
  /** Most messages of the task in the order; all when absent. */
  readonly historyLength?: number;
}

/**
 * Creates the work order that a service or a worker gets with a task: the messages, the caller, the deadline, and the
 * headers for onward calls.
 */
@Injectable()
export class WorkOrders {
  constructor(
    private readonly tokens: ExecutionTokens,
    private readonly seal: LineageSeal,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'A2A_PROCESSING_LIFETIME_MAX_MS'>,
  ) {}

  orderFor({ agent, task, message, earlier, principal, epoch, historyLength }: HandedTask) {
    const { kind, id: subject, role, groups } = principal;
    const token = this.tokens.issue({ taskId: task.id, ...(epoch !== undefined && { epoch }) });
    return {
      task: taskView(task, { historyLength }),
      message,
      history: earlier.slice(-maxHistory),
      caller: { kind, subject, org: agent.org.slug, role, groups, trustTier: task.trustTier },
      deadline: new Date(this.deadlineOf(task, epoch !== undefined)).toISOString(),
      headers: this.headersOf(agent, task),
      token,
    };
  }

  /**
   * Headers for each call that is made for a task: its trace, its depth, and its lineage with the agent added (AN-61).
   */
  headersOf(agent: Pick<PublishedAgent, 'id'>, { depth, lineage }: StoredTask): Record<string, string> {
    const { path = [], deadlineAt, trace = newTrace() }: Partial<Lineage> = lineage ?? {};
    const sealed = this.seal.sealLineage({ depth: depth + 1, path: [...path, placeOf(agent)], deadlineAt });
    return {
      ...traceHeaders(trace, trace.spanId),
      [depthHeader]: String(depth + 1),
      [lineageHeader]: sealed,
    };
  }

  /** The deadline of the call behind the task, or the time at which the task fails when its status stays unchanged. */
  private deadlineOf({ lineage, statusAt }: StoredTask, isLeased: boolean): number {
    const lifetimeMs = isLeased ? mailboxWaitMs : this.settings.A2A_PROCESSING_LIFETIME_MAX_MS;
    return Math.min(statusAt + lifetimeMs, lineage?.deadlineAt ?? Infinity);
  }
}
