import { Injectable } from '@nestjs/common';
import { RialtoError } from '../../kernel/errors.js';
import { isDatabaseAway } from '../../platform/database/outage.js';
import type { RowChange, RowStatement } from '../../platform/database/row-writer.js';
import { credentialsOf, CredentialRemover } from '../../platform/secrets/credential-remover.js';
import { interruptedStates } from '../../protocol/a2a/states.js';
import { ExecutorSecrets } from '../../registry/executor-secrets.js';
import { PublishedService } from '../../registry/published.service.js';
import type { ExecutorConfig } from '../../registry/published.types.js';
import { ExecutionTokens, type TokenScope } from '../execution-tokens.js';
import { TaskChanges } from '../lifecycle/task-changes.js';
import { mailboxLeaseMs, mailboxWaitMs, silenceMs, uncertainMs } from '../storage/execution-times.js';
import { ReportedTaskStore } from '../storage/reported-task.store.js';
import type { Hold } from '../storage/task-writer.js';
import { isSettled } from '../task-stream.service.js';
import { isEnded, type StoredTask } from '../task.types.js';
import type { ExecutionEvent } from './execution-events.js';
import { applyReport, hasReached, turnOf, unseen } from './execution-report.js';

type ExternalKind = Extract<ExecutorConfig['kind'], 'http' | 'mailbox'>;

/** Applies the reported events of external work to stored tasks. Does not check permissions. */
@Injectable()
export class ReportApplier {
  constructor(
    private readonly changes: TaskChanges,
    private readonly store: ReportedTaskStore,
    private readonly published: PublishedService,
    private readonly secrets: ExecutorSecrets,
    private readonly tokens: ExecutionTokens,
  ) {}

  /**
   * Applies all events or none, each id at most once. Throws `conflict` for a task that has ended, or for a lease that
   * is over, and `unavailable`.
   * @param seen the task as it was read last.
   * @param reached the turn that the service has received.
   * @param scope of the token that the reporter bears.
   * @param applied those of the events that the task had applied when it was read; read again when absent.
   */
  async applyEvents(
    seen: StoredTask,
    events: readonly ExecutionEvent[],
    { reached, scope, applied: known }: { reached?: number; scope?: TokenScope; applied?: readonly string[] } = {},
  ): Promise<StoredTask> {
    const cleaned = await this.withoutCredentials(seen, events, scope);
    return this.changes.changeNewest(seen, async (from) => {
      const applied = (from === seen ? known : undefined) ?? (await this.store.appliedOf(from.id, idsOf(events)));
      const fresh = unseen(from, cleaned, applied);
      const isFirstArrival = reached === turnOf(from) && !hasReached(from) && !isSettled(from.state);
      if (fresh.length === 0 && !isFirstArrival) return from;
      const kind = await this.kindOf(from, fresh);
      const moved = applyReport(from, { events: fresh, ...(isFirstArrival && { reached }) }, this.changes.step());
      requireLease(kind, from, fresh, scope);
      const task = moved.events.length > 0 ? released(moved.task) : moved.task;
      const rows = fresh.flatMap((event) => reportRow(task, event));
      const change = { task, from, events: moved.events, hold: holdOf(kind, task), rows };
      const isCommitted = await this.changes.commitAndNotify(change).catch((cause: unknown) => {
        if (isDatabaseAway(cause)) throw cause;
        throw new RialtoError('unavailable', { message: 'the report could not be stored; send it again', cause });
      });
      return isCommitted ? task : undefined;
    });
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
    const { secret, url } = await this.secrets.recentSecretsOf(agentId);
    const tokens = [{ taskId: id }, ...(scope ? [scope] : [])].map((one) => this.tokens.issue(one));
    const secrets = [...(secret ? [secret.reveal()] : []), ...(url === undefined ? [] : credentialsOf(url))];
    return new CredentialRemover([...tokens, ...secrets]).clean(events);
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

export function idsOf(events: readonly ExecutionEvent[]): string[] {
  return events.map(({ id }) => id);
}

const insertReports: RowStatement = {
  name: 'task-report',
  sql: (rows) => `
    insert into a2a_task_reports (task_id, report_id)
    select r.task_id, r.report_id
    from jsonb_to_recordset(${rows}) as r(task_id uuid, report_id text)
    on conflict do nothing`,
};

/** The row by which a repeated event is recognised. Heartbeats have none: a repeated one changes nothing. */
function reportRow({ id: taskId }: StoredTask, { id, type }: ExecutionEvent): RowChange[] {
  return type === 'heartbeat' ? [] : [{ statement: insertReports, row: { task_id: taskId, report_id: id } }];
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
  if (kind === 'mailbox') return { leaseMs: mailboxLeaseMs, dueInMs: mailboxWaitMs, slackMs: mailboxWaitMs / 24 };
  return hasReached(task) ? { dueInMs: silenceMs, slackMs: silenceMs / 10 } : { dueInMs: uncertainMs };
}
