import type { JsonObject } from '../../../kernel/json.js';
import type { Task } from '../model.js';
import { runFacts, type RunFacts } from '../run-facts.js';
import { encodeTask } from '../v03/objects.js';

/** The state of a run's webhook; `disabled`: the gateway no longer calls it, for the given reason. */
export interface RunWebhook {
  state: string;
  reason?: string;
}

/**
 * The answer of `GET /a2a/tasks/{run_id}` and the body sent to `webhook_url`: the flat facts and the whole A2A task
 * (RY-16…18).
 */
export interface RunView extends RunFacts {
  agent_name: string;
  /** The Task of v0.3. */
  task: JsonObject;
  /** The state of its `webhook_url`; absent when there is none (RY-36). */
  webhook?: RunWebhook;
}

/** Returns a task as a run, with the name of its agent. */
export function runView(task: Task, agentName: string, webhook?: RunWebhook): RunView {
  return { ...runFacts(task), agent_name: agentName, task: encodeTask(task), ...(webhook && { webhook }) };
}
