import { isJsonObject, type Json } from '../../kernel/json.js';
import { artifactsText } from './artifact-text.js';
import type { Artifact, Message, Part, Task } from './model.js';
import { interruptedStates, wordOf, type TaskState } from './states.js';

/** Reyn's words for the state of a run (RY-20). */
export type RunStatus = 'running' | 'input-required' | 'completed' | 'failed' | 'cancelled';

/** One choice of a question (RY-28). */
export interface RunChoice {
  id: string;
  label: string;
  hotkey?: string;
}

/** A task as Reyn's callers read it, flat (RY-17); null for a fact that does not apply. */
export interface RunFacts {
  run_id: string;
  status: RunStatus;
  /** The agent's question, while the agent waits for the answer. */
  question: string | null;
  /** The result of a completed run as text; data as JSON when there is no text. */
  result: string | null;
  /** Why the run failed. */
  error: string | null;
  /** Members of a question: its kind, the offered choices, and other details (RY-28). */
  kind?: string;
  choices?: RunChoice[];
  detail?: Json;
}

const words: Record<TaskState, RunStatus> = {
  TASK_STATE_SUBMITTED: 'running',
  TASK_STATE_WORKING: 'running',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'cancelled',
  TASK_STATE_REJECTED: 'failed',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_AUTH_REQUIRED: 'input-required',
  TASK_STATE_UNSPECIFIED: 'running',
};

/**
 * Returns the flat facts of a task. The question is the text of the status message of a waiting task. The result is
 * that of a completed task; without one, it is the text of the artifacts or their data as JSON. The error is that of a
 * failed or rejected task, or the word for its state.
 */
export function runFacts({ id, status, artifacts = [] }: Task): RunFacts {
  const word = words[status.state];
  const text = partsText(status.message?.parts ?? []);
  const isWaiting = interruptedStates.has(status.state);
  return {
    run_id: id,
    status: word,
    question: isWaiting ? text : null,
    result: word === 'completed' ? (text ?? resultOf(artifacts)) : null,
    error: word === 'failed' ? (text ?? wordOf(status.state)) : null,
    ...(isWaiting && status.message && questionFacts(status.message)),
  };
}

/** Joins the texts of the parts with line breaks; null when there are none. */
function partsText(parts: readonly Part[]): string | null {
  const texts = parts.flatMap(({ text }) => (text === undefined || text === '' ? [] : [text]));
  return texts.length > 0 ? texts.join('\n') : null;
}

/** Returns the texts, or the data when there are none: one value unchanged, several as a list. */
function resultOf(artifacts: readonly Artifact[]): string | null {
  const text = artifactsText(artifacts);
  if (text !== '') return text;
  const data = artifacts.flatMap(({ parts }) => parts.flatMap((part) => (part.data === undefined ? [] : [part.data])));
  return data.length > 0 ? JSON.stringify(data.length === 1 ? data[0] : data) : null;
}

/**
 * Reads `kind`, `choices` and `detail` from the metadata of the message that asks, or else from its first data part.
 */
function questionFacts({ metadata = {}, parts }: Message): Pick<RunFacts, 'kind' | 'choices' | 'detail'> {
  const data = parts.map((part) => part.data).find(isJsonObject) ?? {};
  const { kind, choices, detail } = { ...data, ...metadata };
  return {
    ...(typeof kind === 'string' && { kind }),
    ...(Array.isArray(choices) && { choices: choices.flatMap(choiceOf) }),
    ...(detail !== undefined && { detail }),
  };
}

function choiceOf(choice: Json): RunChoice[] {
  if (!isJsonObject(choice) || typeof choice.id !== 'string') return [];
  const { id, label, hotkey } = choice;
  return [{ id, label: typeof label === 'string' ? label : id, ...(typeof hotkey === 'string' && { hotkey }) }];
}
