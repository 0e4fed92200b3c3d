import { Injectable } from '@nestjs/common';
import { Pg } from '../../platform/database/pg.js';
import type { StoredTask } from '../task.types.js';
import { briefColumns, TaskStore, type BriefRow } from './task.store.js';

/** A task, and those of some report ids that it has applied. */
export interface ReportedTask {
  readonly task: StoredTask;
  readonly applied: readonly string[];
}

/** Reads tasks for the reports of their workers. */
@Injectable()
export class ReportedTaskStore {
  constructor(
    private readonly pg: Pg,
    private readonly tasks: TaskStore,
  ) {}

  /** A task by its id, with the reports that it has applied, as of one moment. @param id a UUID. */
  async find(id: string, reportIds: readonly string[]): Promise<ReportedTask | undefined> {
    for (;;) {
      const rows = await this.pg.rows<BriefRow & Pick<ReportedTask, 'applied'>>(
        'task-reported',
        `
        select ${briefColumns()},
          array(
            select report_id
            from a2a_task_reports
            where task_id = t.id and report_id = any(:reportIds::text[])
          ) as applied
        from a2a_tasks t
        where t.id = :id`,
        { id, reportIds },
      );
      if (rows.length === 0) return undefined;
      const [task] = await this.tasks.ofBriefRows(rows);
      if (task) return { task, applied: rows[0]!.applied };
    }
  }

  /** Those of these report ids that a task has applied. */
  async appliedOf(id: string, reportIds: readonly string[]): Promise<readonly string[]> {
    if (reportIds.length === 0) return [];
    const rows = await this.pg.rows<{ reportId: string }>(
      'task-reports-applied',
      `
      select report_id as "reportId"
      from a2a_task_reports
      where task_id = :id and report_id = any(:reportIds::text[])`,
      { id, reportIds },
    );
    return rows.map(({ reportId }) => reportId);
  }
}
