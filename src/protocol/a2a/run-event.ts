import type { Task, TaskStatus } from './model.js';
import { runFacts, type RunFacts } from './run-facts.js';

/** One change of a run as its followers are told, on the stream and by webhook alike (RY-25, RY-28, RY-33). */
export interface RunEvent extends RunFacts {
  agent_name: string;
  /** Rises with each event of the run. */
  progress: number;
}

/** A status of a task as an event of its run. @param progress the number of the event; @param task for what it came to. */
export function runEvent(task: Task, status: TaskStatus, progress: number, agentName: string): RunEvent {
  return { ...runFacts({ ...task, status }), agent_name: agentName, progress };
}
