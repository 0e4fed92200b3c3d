import type { JsonObject } from '../../../kernel/json.js';
import type { Task, TaskStatus } from '../model.js';
import { runFacts, type RunFacts } from '../run-facts.js';

/**
 * Steps of an agent between two states, sent in the metadata of its status updates as `event`; never with arguments or
 * results (RY-25).
 */
const runSteps = ['turn_started', 'llm_called', 'tool_returned', 'tool_failed'] as const;
export type RunStep = (typeof runSteps)[number];

/** One change of a run, sent to its followers on the stream and by webhook alike (RY-25, RY-28, RY-33). */
export interface RunEvent extends RunFacts {
  agent_name: string;
  /** Rises with each event of the run. */
  progress: number;
  /** The step of the agent, when the agent states one. */
  event?: RunStep;
}

/**
 * Converts a status update of a task to an event of its run.
 *
 * @param task the source of the run's result.
 * @param progress the number of the event.
 */
export function runEvent(
  task: Task,
  { status, metadata }: StatusChange,
  progress: number,
  agentName: string,
): RunEvent {
  const event = runSteps.find((step) => step === metadata?.event);
  return { ...runFacts({ ...task, status }), agent_name: agentName, progress, ...(event && { event }) };
}

interface StatusChange {
  readonly status: TaskStatus;
  readonly metadata?: JsonObject;
}
