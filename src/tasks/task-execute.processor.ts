import { Injectable } from '@nestjs/common';
import type { TaskId } from '../kernel/ids.js';
import type { JobPayload } from '../kernel/jobs.js';
import { HandlesJob, type JobHandler } from '../platform/jobs/handles-job.decorator.js';
import { TaskRunner } from './task.runner.js';

/** Works on a task that the queue rang for; the row says whether there is anything to do. */
@Injectable()
@HandlesJob('task.execute')
export class TaskExecuteProcessor implements JobHandler<'task.execute'> {
  constructor(private readonly runner: TaskRunner) {}

  handle({ taskId }: JobPayload<'task.execute'>): Promise<void> {
    return this.runner.runStored(taskId as TaskId);
  }
}
