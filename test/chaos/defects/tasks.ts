import type { Defect } from './defect.js';

/** Defects of the leases of tasks, and of the rows that are written. */
export const taskDefects: readonly Defect[] = [
  {
    name: 'the epoch is not checked: a holder that lost a task still writes',
    breaks: 'I8',
    scenario: 'handover',
    file: 'tasks/storage/task-writer',
    edits: [['and t.lease_epoch = r.from_epoch', "${defect('')}"]],
  },
  {
    name: 'a claim does not check the lease: two processes work at the same time',
    breaks: 'I8',
    scenario: 'duplicates',
    file: 'tasks/storage/task-lease.store',
    edits: [
      [
        'where t.id = before.id\n        and ${isDueByKey}\n        and ${isFreeNow}',
        'where t.id = before.id and ${defect(isDueByKey)} and :trust::int >= 0',
      ],
    ],
  },
  {
    name: 'leases are not renewed',
    breaks: 'I8',
    scenario: 'renewal',
    file: 'tasks/run/task.runner',
    edits: [['if (held.length === 0)', 'if (defect(true))']],
  },
  {
    name: 'a killed process is not noticed: its work waits for the end of the lease',
    breaks: 'I1',
    scenario: 'handover',
    file: 'platform/database/presence',
    edits: [['${owner} <> ${self} and ${isGone(owner)}', "${owner} <> ${self} and ${defect('false')}"]],
  },
  {
    name: 'an asynchronous send is acknowledged before its commit',
    breaks: 'I1',
    scenario: 'crash',
    file: 'tasks/run/task-starter',
    edits: [
      [
        'this.changes.commitAndNotify(change)',
        '(void defect.after(400, () => this.changes.commitAndNotify(change)), defect(true))',
      ],
    ],
  },
  {
    name: 'a blocking send is answered before its commit',
    breaks: 'I1',
    scenario: 'crash',
    file: 'tasks/run/task-starter',
    edits: [['await run.saveFromNow();', 'void defect.after(60, () => run.saveFromNow());']],
  },
  {
    name: 'readers are notified before the commit',
    breaks: 'I3',
    scenario: 'readers',
    file: 'tasks/lifecycle/task-changes',
    edits: [
      [
        'await this.commitSurely(change)',
        '(defect(this.feed.notifyReaders(change.task, change.events)), ' +
          'await defect.after(30, () => undefined), await this.commitSurely(change))',
      ],
    ],
  },
  {
    name: 'event numbers are skipped',
    breaks: 'I3',
    scenario: 'readers',
    file: 'tasks/lifecycle/task.lifecycle',
    edits: [['artifacts, seq: task.seq + 1', 'artifacts, seq: defect(task.seq + 2)']],
  },
  {
    name: 'a reader that resumes misses one event',
    breaks: 'I3',
    scenario: 'readers',
    file: 'tasks/task.service',
    edits: [['Math.min(after, task.seq)', 'Math.min(defect(after + 1), task.seq)']],
  },
  {
    name: 'a key may be used by two sends at the same time',
    breaks: 'I4',
    scenario: 'keys',
    file: 'tasks/storage/idempotency-keys',
    edits: [["'r.keyed is not true or r.id in (select task_id from k)'", "defect('true')"]],
  },
  {
    name: 'another payload under a key is accepted as the first one',
    breaks: 'I4',
    scenario: 'keys',
    file: 'tasks/earlier-messages',
    edits: [['found.payloadHash !== key.payloadHash', 'defect(false)']],
  },
  {
    name: 'an end is overwritten by another one',
    breaks: 'I2',
    scenario: 'ends',
    file: 'tasks/storage/task-writer',
    edits: [
      ['and t.seq = r.from_seq', "${defect('')}"],
      ['and t.lease_epoch = r.from_epoch', ''],
      ["and ${textByKey('t.status_state')} in ('submitted', 'working', 'input-required', 'auth-required')", ''],
      ['where r.task_id in (select id from ok)', 'where r.task_id in (select id from ok) on conflict do nothing'],
    ],
  },
  {
    name: 'a cancel that came too late reports success',
    breaks: 'I7',
    scenario: 'ends',
    file: 'tasks/lifecycle/task.lifecycle',
    edits: [["if (task.state === 'TASK_STATE_CANCELED')", 'if (defect(terminalStates.has(task.state)))']],
  },
  {
    name: 'a report of a holder that lost the task is accepted',
    breaks: 'I8',
    scenario: 'ends',
    file: 'tasks/external/report-applier',
    edits: [['if (leaseEpoch === epoch && !isOver)', 'if (defect(true))']],
  },
];
