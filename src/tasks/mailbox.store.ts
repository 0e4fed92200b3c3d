import { Injectable } from '@nestjs/common';
import { Pg } from '../platform/database/pg.js';
import { mailboxLeaseMs, mailboxWaitMs } from './execution-times.js';
import { lastsSince, type Claimed } from './task-lease.store.js';
import { taskColumns, TaskStore, type TaskRow } from './task.store.js';

/** A process of ours holds a task of a mailbox only while it puts it in; nobody has to wait for that. */
const isWaiting = `t.next_at is not null and t.status_state in ('submitted', 'working')
  and (t.lease_until is null or t.lease_until < now() or t.lease_owner is not null)`;
const holderWasLost = 'lease_until is not null and lease_owner is null';

/** Which tasks wait in which mailbox; who holds them is outside, and known by the epoch alone. */
@Injectable()
export class MailboxStore {
  constructor(
    private readonly pg: Pg,
    private readonly tasks: TaskStore,
  ) {}

  /** Leases the oldest task that waits; undefined when there is none. Its order keeps the planner to the tasks that are not over. */
  async lease(agentId: string): Promise<Claimed | undefined> {
    const rows = await this.pg.rows<TaskRow & { crashes: number }>(
      'mailbox-lease',
      `update a2a_tasks t set lease_owner = null, lease_until = now() + ${mailboxLeaseMs} * interval '1 millisecond',
         lease_epoch = lease_epoch + 1, next_at = now() + ${mailboxWaitMs} * interval '1 millisecond',
         crashes = crashes + (case when ${holderWasLost} then 1 else 0 end), updated_at = now()
       where t.id = (select t.id from a2a_tasks t where t.agent_id = $1 and ${isWaiting}
         order by t.created_at, t.id limit 1 for update skip locked)
       returning ${taskColumns}, t.crashes`,
      [agentId],
    );
    const [task] = await this.tasks.fold(rows);
    return task && { task, crashes: rows[0]!.crashes };
  }

  /** How much longer a task may lie in its mailbox, in whole milliseconds. */
  async leftMs(taskId: string): Promise<number> {
    const [row] = await this.pg.rows<{ left: number }>(
      'mailbox-left',
      `select ceil(${mailboxWaitMs} - extract(epoch from now() - ${lastsSince}) * 1000)::float8 as left from a2a_tasks t where t.id = $1`,
      [taskId],
    );
    return row?.left ?? mailboxWaitMs;
  }

  /** Of these agents, those for whom a task waits. */
  async filled(agentIds: readonly string[]): Promise<string[]> {
    const rows = await this.pg.rows<{ id: string }>(
      'mailbox-filled',
      `select distinct t.agent_id as id from a2a_tasks t where t.agent_id = any($1::uuid[]) and ${isWaiting}`,
      [agentIds],
    );
    return rows.map(({ id }) => id);
  }
}
