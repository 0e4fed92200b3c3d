import { isJsonObject, type Json } from '../../kernel/json.js';
import { artifactsText } from './artifact-text.js';
import type { Artifact, Message, Part, Task } from './model.js';
import { interruptedStates, wordOf, type TaskState } from './states.js';

/** Reyn's words for the state of a run (RY-20). */
export type RunWord = 'running' | 'input-required' | 'completed' | 'failed' | 'cancelled';

/** One choice of a question (RY-28). */
export interface RunChoice {
  id: string;
  label: string;
  hotkey?: string;
}

/** A task as Reyn's callers read it, flat (RY-17); null where there is nothing to say. */
export interface RunFacts {
  run_id: string;
  status: RunWord;
  /** What the agent asks, while it waits for the answer. */
  question: string | null;
  /** What a completed run came to, as text: data as JSON when nothing was said. */
  result: string | null;
  /** Why a run failed. */
  error: string | null;
  /** Of a question: its kind, the choices it offers, whatever else describes it (RY-28). */
  kind?: string;
  choices?: RunChoice[];
  detail?: Json;
}

const words: Record<TaskState, RunWord> = {
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
 * The flat facts of a task. The question is the text of the status message of a waiting task, the result that of a completed one, or of
 * its artifacts when the status says nothing, data as JSON; the error that of a failed or rejected one, or the word for its end.
 */
export function runFacts({ id, status, artifacts = [] }: Task): RunFacts {
  const word = words[status.state];
  const said = textOf(status.message?.parts ?? []);
  const isWaiting = interruptedStates.has(status.state);
  return {
    run_id: id,
    status: word,
    question: isWaiting ? said : null,
    result: word === 'completed' ? (said ?? resultOf(artifacts)) : null,
    error: word === 'failed' ? (said ?? wordOf(status.state)) : null,
    ...(isWaiting && status.message && questionFacts(status.message)),
  };
}

/** The texts among the parts, one a line; null when there are none. */
function textOf(parts: readonly Part[]): string | null {
  const texts = parts.flatMap(({ text }) => (text === undefined || text === '' ? [] : [text]));
  return texts.length > 0 ? texts.join('\n') : null;
}

/** The texts, or else the data: one value as it is, several as a list. */
function resultOf(artifacts: readonly Artifact[]): string | null {
  const text = artifactsText(artifacts);
  if (text !== '') return text;
  const data = artifacts.flatMap(({ parts }) => parts.flatMap((part) => (part.data === undefined ? [] : [part.data])));
  return data.length > 0 ? JSON.stringify(data.length === 1 ? data[0] : data) : null;
}

/** `kind`, `choices` and `detail` stand in the metadata of the message that asks, or else in its first data part. */
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
