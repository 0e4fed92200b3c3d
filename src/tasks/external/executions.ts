import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isDatabaseAway } from '../../platform/database/outage.js';
import { isUuid } from '../../kernel/ids.js';
import { VerbBus, type VerbCall } from '../../kernel/verb-bus.js';
import { credentialsOf, SaidBack } from '../../platform/secrets/said-back.js';
import { ContextService } from '../../policy/context.service.js';
import { interruptedStates, wordOf } from '../../protocol/a2a/states.js';
import { ExecutorSecrets } from '../../registry/executor-secrets.js';
import { PublishedService } from '../../registry/published.service.js';
import type { ExecutorConfig } from '../../registry/published.types.js';
import type { ExecutionEvent, ReportView } from './execution-events.js';
import type { Reporter } from './execution.guard.js';
import { ExecutionTokens, type TokenScope } from '../execution-tokens.js';
import { applyReport, hasReached, turnOf, unseen } from './execution-report.js';
import { mailboxLeaseMs, mailboxWaitMs, silenceMs, uncertainMs } from '../storage/execution-times.js';
import { LiveTasks } from '../lifecycle/live-tasks.js';
import { isSettled } from '../task-stream.service.js';
import { noSuchTask } from '../task-submit.service.js';
import { maySee, workerFor } from '../task-verbs.js';
import type { Hold } from '../storage/task-writer.js';
import { isEnded, type StoredTask } from '../task.types.js';

/**
 * Most attempts against a task that changes at the same time; an attempt fails only when another change was committed.
 */
const maxTries = 20;

type ExternalKind = Extract<ExecutorConfig['kind'], 'http' | 'mailbox'>;

/** Applies reports about tasks that external workers or services run. */
@Injectable()
export class Executions {
  constructor(
    private readonly verbs: VerbBus,
    private readonly contexts: ContextService,
    private readonly lives: LiveTasks,
    private readonly published: PublishedService,
    private readonly secrets: ExecutorSecrets,
    private readonly tokens: ExecutionTokens,
  ) {}

  /**
   * Applies all events or none, each id at most once. Throws `task_not_found`, also for a task of another owner,
   * `denied`, `rate_limited`, and `conflict` for a task that has ended, or for a lease that is over.
   */
  async report(reporter: Reporter, id: string, events: readonly ExecutionEvent[]): Promise<ReportView> {
    const task = await this.visible(reporter, id);
    if (!('ctx' in reporter)) {
      const agent = (await this.published.byId(task.agentId)) ?? {
        id: task.agentId,
        org: { id: task.orgId, slug: '' },
      };
      this.contexts.admit(workerFor(agent, reporter.requestId));
      return reportView(await this.take(task, events, undefined, reporter));
    }
    return this.verbs.around(reportAct(reporter.ctx, task), async () => reportView(await this.take(task, events)));
  }

  /**
   * Applies events without a check of permissions.
   * @param seen the task as it was read last.
   * @param reached the turn that the service has received.
   * @param scope of the token that the reporter bears.
   */
  async take(
    seen: StoredTask,
    events: readonly ExecutionEvent[],
    reached?: number,
    scope?: TokenScope,
  ): Promise<StoredTask> {
    const cleaned = await this.withoutCredentials(seen, events, scope);
    let from = seen;
    for (let attempt = 0; attempt < maxTries; attempt++) {
      const fresh = unseen(from, cleaned);
      const isFirstArrival = reached === turnOf(from) && !hasReached(from) && !isSettled(from.state);
      if (fresh.length === 0 && !isFirstArrival) return from;
      const kind = await this.kindOf(from, fresh);
      const applied = applyReport(from, { events: fresh, ...(isFirstArrival && { reached }) }, this.lives.step());
      requireLease(kind, from, fresh, scope);
      const task = applied.events.length > 0 ? released(applied.task) : applied.task;
      if (await this.commit(task, from, applied.events, kind)) return task;
      from = (await this.lives.store.find(seen.id)) ?? from;
    }
    throw new RialtoError('unavailable', { message: 'the task changes too fast; try again' });
  }

  /**
   * Removes from the events the credentials that the gateway shares with the reporter: its tokens, its secret, and
   * those in its URL.
   */
  private async withoutCredentials(
    { id, agentId }: StoredTask,
    events: readonly ExecutionEvent[],
    scope?: TokenScope,
  ): Promise<readonly ExecutionEvent[]> {
    if (events.length === 0) return events;
    const { secret, url } = await this.secrets.of(agentId);
    const tokens = [{ taskId: id }, ...(scope ? [scope] : [])].map((one) => this.tokens.issue(one));
    const secrets = [...(secret ? [secret.reveal()] : []), ...(url === undefined ? [] : credentialsOf(url))];
    return new SaidBack([...tokens, ...secrets]).clean(events);
  }

  private async commit(
    task: StoredTask,
    from: StoredTask,
    events: ReturnType<typeof applyReport>['events'],
    kind: ExternalKind,
  ): Promise<boolean> {
    const done = await this.lives.commit({ task, from, events, hold: holdOf(kind, task) }).catch((cause) => {
      if (isDatabaseAway(cause)) throw cause;
      throw new RialtoError('unavailable', { message: 'the report could not be stored; send it again', cause });
    });
    if (done && events.length > 0) this.lives.feed.tell(task, events);
    return done;
  }

  private async visible(reporter: Reporter, id: string): Promise<StoredTask> {
    const task = isUuid(id) ? await this.lives.store.find(id) : undefined;
    const mayReport = task && ('ctx' in reporter ? maySee(reporter.ctx, task) : reporter.taskId === task.id);
    if (!mayReport) throw noSuchTask(id);
    return task;
  }

  /** The kind of executor of a task. When its agent is gone, the form of the report decides. */
  private async kindOf(task: StoredTask, [event]: readonly ExecutionEvent[]): Promise<ExternalKind> {
    const agent = await this.published.byId(task.agentId);
    const kind = agent ? agent.executor.kind : event?.leaseEpoch === undefined ? 'http' : 'mailbox';
    if (kind === 'http' || kind === 'mailbox') return kind;
    throw new RialtoError('conflict', {
      message: 'the agent of this task has no external worker',
      data: { taskId: task.id },
    });
  }
}

/** The act of a report with a credential of the org, in place of the worker: only an administrator may do it. */
function reportAct(ctx: CallContext, task: StoredTask): VerbCall {
  return {
    ctx,
    verb: 'execution.report',
    action: 'admin_write',
    resource: { type: 'Org', id: ctx.org.slug },
    args: { agent: task.agentName, taskId: task.id },
    sessionId: task.id,
  };
}

/**
 * Throws `conflict` unless the events belong to the current lease. A token is valid only for its own lease, even when
 * its bearer knows a later epoch.
 */
function requireLease(
  kind: ExternalKind,
  { id, epoch }: StoredTask,
  events: readonly ExecutionEvent[],
  scope: TokenScope | undefined,
): void {
  const isOfLease = kind === 'mailbox' || scope?.epoch !== undefined;
  const isOver = isOfLease && scope !== undefined && scope.epoch !== epoch;
  for (const { leaseEpoch } of events) {
    if (leaseEpoch === undefined && kind === 'http' && !isOver) continue;
    if (leaseEpoch === undefined && kind === 'mailbox')
      throw new RialtoError('invalid_params', {
        message: 'leaseEpoch: is required for a task of a mailbox',
        violations: [{ field: 'leaseEpoch', description: 'is required for a task of a mailbox' }],
      });
    if (leaseEpoch === epoch && !isOver) continue;
    throw new RialtoError('conflict', {
      message: 'the lease is over: another worker may have the task',
      data: { taskId: id },
    });
  }
}

/** Releases the lease of a task that asks its caller: the answer goes to the next worker that leases it. */
function released(task: StoredTask): StoredTask {
  return interruptedStates.has(task.state) ? { ...task, epoch: task.epoch + 1 } : task;
}

function holdOf(kind: ExternalKind, task: StoredTask): Hold {
  if (isEnded(task) || interruptedStates.has(task.state)) return {};
  if (kind === 'mailbox') return { leaseMs: mailboxLeaseMs, dueInMs: mailboxWaitMs };
  return { dueInMs: hasReached(task) ? silenceMs : uncertainMs };
}

function reportView({ id, state, seq }: StoredTask): ReportView {
  return { taskId: id, state: wordOf(state), seq };
}
