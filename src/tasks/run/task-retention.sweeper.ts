import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Pg } from '../../platform/database/pg.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';

const batch = 2_000;

/** Deletes ended tasks past their retention with their log and keys, oldest first, in batches. */
@Injectable()
@Sweeps('task.retention')
export class TaskRetentionSweeper implements Sweeper {
  readonly everyMs = 60_000;

  constructor(
    private readonly pg: Pg,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  /** Deletes in batches until none is left. Ids begin with their creation time, so the primary key finds the oldest. */
  async sweep(): Promise<void> {
    for (let deleted = batch; deleted === batch;) {
      const rows = await this.pg.rows(
        'tasks-retention',
        `with old as (
           select id from a2a_tasks where id < (lpad(to_hex((extract(epoch from now() - make_interval(days => $1::int)) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid
             and status_state in ('completed', 'failed', 'canceled', 'rejected') and updated_at < now() - make_interval(days => $1::int)
           order by id limit ${batch}),
         events as (delete from a2a_task_events where task_id in (select id from old)),
         keys as (delete from a2a_idempotency_keys where task_id in (select id from old))
         delete from a2a_tasks where id in (select id from old) returning id`,
        [this.settings.RIALTO_TASK_RETENTION_DAYS],
      );
      deleted = rows.length;
    }
    await this.pg.rows(
      'answers-retention',
      `delete from a2a_idempotency_keys where answer is not null and created_at < now() - make_interval(days => $1::int)`,
      [this.settings.RIALTO_TASK_RETENTION_DAYS],
    );
  }
}
