import type { JsonObject } from '../../../kernel/json.js';
import type { Task } from '../model.js';
import { runFacts, type RunFacts } from '../run-facts.js';
import { encodeTask } from '../v03/objects.js';

/** `disabled`: it is left alone, for a reason. */
export interface RunWebhook {
  state: string;
  reason?: string;
}

/** What `GET /a2a/tasks/{run_id}` answers and `webhook_url` is told: the flat facts, and the whole A2A task (RY-16…18). */
export interface RunView extends RunFacts {
  agent_name: string;
  /** The Task of v0.3. */
  task: JsonObject;
  /** What became of its `webhook_url`; absent without one (RY-36). */
  webhook?: RunWebhook;
}

/** A task as a run, with the name of the agent that has it. */
export function runView(task: Task, agentName: string, webhook?: RunWebhook): RunView {
  return { ...runFacts(task), agent_name: agentName, task: encodeTask(task), ...(webhook && { webhook }) };
}
