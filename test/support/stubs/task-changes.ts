import { newId, type AgentId, type OrgId, type TaskId } from '../../../src/kernel/ids.js';
import { applyUpdate, openTask, type Moved, type Step } from '../../../src/tasks/lifecycle/task.lifecycle.js';
import type { TaskChange } from '../../../src/tasks/storage/task-writer.js';
import type { StoredTask } from '../../../src/tasks/task.types.js';

export const step: Step = { now: Date.now(), newId, maxWeight: 100_000 };
export const org = newId<OrgId>();
const agent = newId<AgentId>();
const principal = { kind: 'user', id: 'bob', role: 'member', groups: [] } as const;
export const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] } as const;

/** A new task of `org`, and its first event. */
export const opened = (): Moved =>
  openTask(
    { id: newId<TaskId>(), orgId: org, agentId: agent, agentName: 'a', contextId: 'c', principal, depth: 0 },
    { ...message, parts: [...message.parts] },
    step,
  );
/** The change that stores a new task. */
export const inserted = (moved = opened(), more: Partial<TaskChange> = {}): TaskChange => ({
  task: moved.task,
  events: [moved.event],
  hold: { dueInMs: 0 },
  ...more,
});
/** The change that moves a task to a state. */
export const moved = (
  from: StoredTask,
  state: 'TASK_STATE_WORKING' | 'TASK_STATE_COMPLETED' = 'TASK_STATE_COMPLETED',
): TaskChange => {
  const { task, event } = applyUpdate(from, { status: { state } }, step);
  return { task, from, events: [event], hold: {} };
};
