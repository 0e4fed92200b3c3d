import { Injectable } from '@nestjs/common';
import type { TaskId } from '../../kernel/ids.js';
import type { JobPayload } from '../../kernel/jobs.js';
import { HandlesJob, type JobHandler } from '../../platform/jobs/handles-job.decorator.js';
import { AttemptFailed, type JobRun } from '../../platform/jobs/job-run.js';
import { wordOf } from '../../protocol/a2a/states.js';
import type { LiveTask } from '../lifecycle/live-task.js';
import { TaskClaimer } from './task-claimer.js';

const progressMs = 1_000;

/** Runs a queued task; the row decides whether there is anything to do. The job lasts as long as the run. */
@Injectable()
@HandlesJob('task.execute')
export class TaskExecuteProcessor implements JobHandler<'task.execute'> {
  constructor(private readonly claimer: TaskClaimer) {}

  async handle({ taskId }: JobPayload<'task.execute'>, job: JobRun): Promise<void> {
    const run = await this.claimer.beginTask(taskId as TaskId, job.line);
    if (!run)
      return job.log(`task ${taskId}: nothing to do; it has ended, waits for its caller, or runs in another process`);
    const { live } = run;
    const timer = setInterval(() => job.progress(progressOf(live)), progressMs);
    await run.ended;
    clearInterval(timer);
    job.progress(progressOf(live));
    const { state, events } = progressOf(live);
    const end = live.lost ? 'taken over or ended by another process' : state;
    job.log(`task ${taskId} of agent ${live.task.agentName}: ${end} after ${events} events`);
    if (run.flaw !== undefined) throw new AttemptFailed(run.flaw);
  }
}

function progressOf({ committed: { state, seq } }: LiveTask): { state: string; events: number } {
  return { state: wordOf(state), events: seq };
}
