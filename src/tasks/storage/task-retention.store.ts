import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import { EventSinks } from '../event-sinks.js';

const batch = 2_000;

/** Deletes tasks with their logs and keys. */
@Injectable()
export class TaskRetentionStore {
  constructor(
    private readonly pg: Pg,
    private readonly sinks: EventSinks,
  ) {}

  /**
   * Deletes the oldest tasks that ended more than `days` days ago, at most `batch`; those of which an event sink needs
   * the log stay. Returns true when it deleted as many: there may be more. Ids begin with their creation time, so the
   * primary key finds the oldest.
   */
  async deleteBatch(days: number): Promise<boolean> {
    const rows = await this.pg.rows(
      'tasks-retention',
      `
      with old as (
        select id
        from a2a_tasks
        where id < (
            lpad(to_hex((extract(epoch from now() - make_interval(days => :days::int)) * 1000)::bigint), 12, '0')
            || '00000000000000000000'
          )::uuid
          and status_state in ('completed', 'failed', 'canceled', 'rejected')
          and updated_at < now() - make_interval(days => :days::int)
          ${this.needed}
        order by id
        limit ${batch}
      ),
      events as (
        delete from a2a_task_events
        where task_id in (select id from old)
      ),
      reports as (
        delete from a2a_task_reports
        where task_id in (select id from old)
      ),
      keys as (
        delete from a2a_idempotency_keys
        where task_id in (select id from old)
      )
      delete from a2a_tasks
      where id in (select id from old)
      returning id`,
      { days },
    );
    return rows.length === batch;
  }
  /** Excludes tasks of which an event sink needs the log. */
  private get needed(): string {
    const needs = this.sinks.all.flatMap((sink) => sink.needsLog?.('a2a_tasks.id') ?? []);
    return needs.map((need) => `and not ${need}`).join(' ');
  }
}
