import { Injectable } from '@nestjs/common';
import type { TaskId } from '../../kernel/ids.js';
import type { JobPayload } from '../../kernel/jobs.js';
import { HandlesJob, type JobHandler } from '../../platform/jobs/handles-job.decorator.js';
import { AttemptFailed, requireSuccess, type JobFacts, type JobRun } from '../../platform/jobs/job-run.js';
import { wordOf } from '../../protocol/a2a/states.js';
import type { LiveTask } from '../lifecycle/live-task.js';
import { TaskClaimer } from './task-claimer.js';
import type { Begun } from './task-run.js';

const progressMs = 1_000;

/** Runs queued tasks; the rows decide whether there is anything to do. The job lasts as long as its longest run. */
@Injectable()
@HandlesJob('task.execute')
export class TaskExecuteProcessor implements JobHandler<'task.execute'> {
  constructor(private readonly claimer: TaskClaimer) {}

  handle(payload: JobPayload<'task.execute'>, job: JobRun): Promise<void> {
    return 'taskId' in payload ? this.runTask(payload.taskId as TaskId, job) : this.runTasks(payload.taskIds, job);
  }

  private async runTask(taskId: TaskId, job: JobRun): Promise<void> {
    const run = await this.claimer.beginTask(taskId, job.line);
    if (!run)
      return job.log(`task ${taskId}: nothing to do; it has ended, waits for its caller, or runs in another process`);
    const { live } = run;
    await progressUntil(run.ended, job, () => progressOf(live));
    const { state, events } = progressOf(live);
    const end = live.lost ? 'taken over or ended by another process' : state;
    job.log(`task ${taskId} of agent ${live.task.agentName}: ${end} after ${events} events`);
    if (run.flaw !== undefined) throw new AttemptFailed(run.flaw);
  }

  /** One line and one progress for all of them: each costs the queue as much as a job. */
  private async runTasks(taskIds: readonly string[], job: JobRun): Promise<void> {
    const facts = { tasks: taskIds.length, begun: 0, ended: 0, failed: 0 };
    const runs = taskIds.map(async (id) => {
      const run = await this.claimer.beginTask(id as TaskId, job.line);
      if (!run) return undefined;
      facts.begun++;
      await run.ended;
      facts.ended++;
      if (run.flaw !== undefined) facts.failed++;
      return run;
    });
    const settled = Promise.allSettled(runs);
    await progressUntil(settled, job, () => ({ ...facts }));
    job.log(`${facts.tasks} tasks: ${facts.ended} run here, ${facts.failed} of them failed`);
    const ends = await settled;
    const failed = ends.flatMap((end) => (end.status === 'fulfilled' && end.value?.flaw ? [nameOf(end.value)] : []));
    requireSuccess(ends, failed);
  }
}

function nameOf({ live, flaw }: Begun): string {
  return `task ${live.task.id}: ${flaw}`;
}

/** Shows facts as the progress of a job, each second and at the end of the work. */
async function progressUntil(work: Promise<unknown>, job: JobRun, factsNow: () => JobFacts): Promise<void> {
  const timer = setInterval(() => job.progress(factsNow()), progressMs);
  await work;
  clearInterval(timer);
  job.progress(factsNow());
}

function progressOf({ committed: { state, seq } }: LiveTask): { state: string; events: number } {
  return { state: wordOf(state), events: seq };
}
