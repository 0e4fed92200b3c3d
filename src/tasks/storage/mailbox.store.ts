import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { isFree, Presence } from '../../platform/database/presence.js';
import { later } from '../../platform/database/sql.js';
import { mailboxLeaseMs, mailboxWaitMs } from './execution-times.js';
import { lastsSince, type Claimed } from './task-lease.store.js';
import { briefColumns, TaskStore, type BriefRow } from './task.store.js';
import type { StoredTask } from '../task.types.js';
import type { Hold } from './task-writer.js';

/**
 * SQL condition: the task is in a mailbox and is not leased, neither by a gateway process that is handing it out nor by
 * an external worker. An external worker cannot renew its lease while the database is unavailable, so `trust` applies
 * to it too.
 */
const isWaiting = `t.next_at is not null
  and t.status_state in ('submitted', 'working')
  and ${isFree('t', { self: ':self', trust: ':trust' })}`;
const holderWasLost = 'lease_until is not null and lease_owner is null';

/**
 * Leases tasks from mailboxes to external workers. A row has no lease owner for an external worker; its epoch alone
 * identifies the holder.
 */
@Injectable()
export class MailboxStore {
  constructor(
    private readonly pg: Pg,
    private readonly tasks: TaskStore,
    private readonly presence: Presence,
  ) {}

  /**
   * The lease of a task while its answer is on the way to the external worker. When this process is killed, the task is
   * free at once.
   */
  get hold(): Hold {
    return { leaseOwner: this.presence.id, leaseMs: mailboxLeaseMs, dueInMs: mailboxWaitMs };
  }

  /**
   * Leases the oldest waiting task, to hand it out; undefined when there is none. The `order by` makes the planner use
   * the index of open tasks.
   */
  async lease(agentId: string): Promise<Claimed | undefined> {
    const rows = await this.pg.rows<BriefRow & { crashes: number }>(
      'mailbox-lease',
      `
      update a2a_tasks t
      set lease_owner = :self,
        lease_until = ${later(mailboxLeaseMs)},
        lease_epoch = lease_epoch + 1,
        next_at = ${later(mailboxWaitMs)},
        crashes = crashes + (case when ${holderWasLost} then 1 else 0 end),
        updated_at = now()
      where t.id = (
        select t.id
        from a2a_tasks t
        where t.agent_id = :agentId and ${isWaiting}
        order by t.created_at, t.id
        limit 1
        for update skip locked
      )
      returning ${briefColumns()}, t.crashes`,
      { agentId, self: this.presence.id, trust: this.presence.trust },
    );
    const [task] = await this.tasks.ofBriefRows(rows);
    return task && { task, crashes: rows[0]!.crashes };
  }

  /** Gives the lease to the external worker that fetched the task, unless it has already reported. */
  async handedOut({ id, epoch }: Pick<StoredTask, 'id' | 'epoch'>): Promise<void> {
    await this.pg.rows(
      'mailbox-handed-out',
      `
      update a2a_tasks
      set lease_owner = null, lease_until = ${later(mailboxLeaseMs)}
      where id = :id and lease_epoch = :epoch and lease_owner = :self`,
      { id, epoch, self: this.presence.id },
    );
  }

  /** Releases a task that reached no external worker: it waits as before. */
  async takenBack({ id, epoch }: Pick<StoredTask, 'id' | 'epoch'>): Promise<void> {
    await this.pg.rows(
      'mailbox-taken-back',
      `
      update a2a_tasks
      set lease_owner = null, lease_until = null
      where id = :id and lease_epoch = :epoch and lease_owner = :self`,
      { id, epoch, self: this.presence.id },
    );
  }

  /** Remaining time of a task in its mailbox, in whole milliseconds. */
  async leftMs(taskId: string): Promise<number> {
    const [row] = await this.pg.rows<{ left: number }>(
      'mailbox-left',
      `
      select ceil(${mailboxWaitMs} - extract(epoch from now() - ${lastsSince}) * 1000)::float8 as left
      from a2a_tasks t
      where t.id = :taskId`,
      { taskId },
    );
    return row?.left ?? mailboxWaitMs;
  }

  /** Those of the given agents that have a waiting task. */
  async filled(agentIds: readonly string[]): Promise<string[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'mailbox-filled',
      `
      select distinct t.agent_id as id
      from a2a_tasks t
      where t.agent_id = any(:agentIds::uuid[]) and ${isWaiting}`,
      { agentIds, self: this.presence.id, trust: this.presence.trust },
    );
    return rows.map(({ id }) => id);
  }
}
