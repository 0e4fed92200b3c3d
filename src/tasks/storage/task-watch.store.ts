import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import type { Invariant } from '../../platform/telemetry/metrics.js';

const perSample = 1_000;

/** A task that breaks an invariant. */
export interface Breach {
  readonly id: string;
  readonly inv: Invariant;
}

/** Checks the invariants of tasks in their rows. */
@Injectable()
export class TaskWatchStore {
  constructor(private readonly pg: Pg) {}

  /**
   * Finds breaches among the thousand tasks from this id on: a row and a log that contradict each other (I2, I3), or an
   * open task that no worker will pick up (I1). Reads the primary keys of tasks and events in one snapshot, so it sees
   * a commit completely or not at all.
   */
  breaches(from: string): Promise<Breach[]> {
    return this.pg.rows<Breach>(
      'task-breaches',
      `
      with sample as materialized (
        select id, seq, next_at,
          status_state in ('completed', 'failed', 'canceled', 'rejected') as ended,
          status_state in ('submitted', 'working') as open
        from a2a_tasks
        where id >= :from
        order by id
        limit ${perSample}
      ),
      logs as (
        select s.*, l.*
        from sample s
        cross join lateral (
          select coalesce(sum(e.seq - coalesce(e.first_seq, e.seq) + 1), 0) as events,
            max(e.seq) as last,
            count(*) filter (where e.terminal) as ends,
            max(e.seq) filter (where e.terminal) as ending
          from a2a_task_events e
          where e.task_id = s.id
        ) l
      )
      select id, 'I1' as inv
      from logs
      where open and next_at is null
      union all
      select id, 'I2'
      from logs
      where ended <> (ends = 1) or ending < last
      union all
      select id, 'I3'
      from logs
      where events <> seq or last <> seq`,
      { from },
    );
  }
}
