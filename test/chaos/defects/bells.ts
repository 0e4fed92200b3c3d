import type { Defect } from './defect.js';

/** Defects of the queue that wakes workers, and of the sweeper that finds work without it. */
export const bellDefects: readonly Defect[] = [
  {
    name: 'the job is enqueued before the commit',
    breaks: 'I1',
    scenario: 'bells',
    file: 'tasks/run/task-starter',
    edits: [
      ['this.jobs.enqueueNew(task.id, this.quota.lineOf(task));', ';'],
      [
        'this.changes.commitAndNotify(change)',
        '(defect(this.jobs.enqueue(task.id)), defect.after(60, () => this.changes.commitAndNotify(change)))',
      ],
    ],
  },
  {
    name: 'a job keeps the id of the row, so a second one is ignored',
    breaks: 'I1',
    scenario: 'bells',
    file: 'platform/jobs/job-producer',
    edits: [['deduplication: { id: key, keepLastIfActive: true }', 'jobId: defect(key)']],
  },
  {
    name: 'the sweeper does nothing: a lost job strands its row',
    breaks: 'I1',
    scenario: 'lost bells',
    file: 'platform/jobs/due-work',
    edits: [['await this.work.find(perSweep)', 'defect([])']],
  },
  {
    name: 'an accept waits for the queue',
    breaks: 'I1',
    scenario: 'lost bells',
    file: 'tasks/run/task-starter',
    edits: [
      [
        'this.jobs.enqueueNew(task.id, this.quota.lineOf(task));',
        "await defect([...this.jobs.producer.queues.values()][0]).add('task-execution', { taskId: task.id });",
      ],
    ],
  },
  {
    name: 'a stop does not wait for work in progress',
    breaks: 'I1',
    scenario: 'deploy',
    file: 'run-gateway',
    edits: [['.then((gateway) => gateway.close())', '.then(() => (defect(), process.exit(0)))']],
  },
];
