import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Pg } from '../../platform/database/pg.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';

const batch = 5_000;

/**
 * Ends calls of killed processes, so that they do not count as load for good, and deletes ended calls after their
 * retention time.
 */
@Injectable()
@Sweeps('call.retention')
export class CallRetentionSweeper implements Sweeper {
  readonly everyMs = 60_000;

  constructor(
    private readonly pg: Pg,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async sweep(): Promise<void> {
    await this.pg.rows(
      'calls-abandoned',
      `update a2a_task_instances set status = 'failed', error_code = 'abandoned', ended_at = now()
       where status = 'active' and expires_at < now()`,
    );
    await this.pg.rows(
      'calls-retention',
      `delete from a2a_task_instances where id in (select old.id from orgs o cross join lateral (
         select id from a2a_task_instances t where t.org_id = o.id and status <> 'active'
         and started_at < now() - make_interval(days => $1::int) order by started_at limit ${batch}) old limit ${batch})`,
      [this.settings.RIALTO_TASK_RETENTION_DAYS],
    );
  }
}
