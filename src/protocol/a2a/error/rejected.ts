import type { SendValue } from '../dialect.js';
import type { StreamResponse, Task, TaskStatus } from '../model.js';

/*
 * For callers of older methods, which do not know the state `rejected`: they see a rejected task as failed, with the
 * same message (RI-36).
 */

export function failedReply(value: SendValue): SendValue {
  return 'task' in value ? { ...value, task: failedTask(value.task) } : value;
}

export function failedEvent(event: StreamResponse): StreamResponse {
  if ('task' in event) return { task: failedTask(event.task) };
  if (!('statusUpdate' in event)) return event;
  return { statusUpdate: { ...event.statusUpdate, status: failedStatus(event.statusUpdate.status) } };
}

function failedTask(task: Task): Task {
  return { ...task, status: failedStatus(task.status) };
}

function failedStatus(status: TaskStatus): TaskStatus {
  return status.state === 'TASK_STATE_REJECTED' ? { ...status, state: 'TASK_STATE_FAILED' } : status;
}
