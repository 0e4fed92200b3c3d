/** Canonical task states (v1.0) with their v0.3 words (a2a.proto TaskState; v0.3 specification section 6.3). */
const words = {
  TASK_STATE_SUBMITTED: 'submitted',
  TASK_STATE_WORKING: 'working',
  TASK_STATE_COMPLETED: 'completed',
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_CANCELED: 'canceled',
  TASK_STATE_REJECTED: 'rejected',
  TASK_STATE_INPUT_REQUIRED: 'input-required',
  TASK_STATE_AUTH_REQUIRED: 'auth-required',
  TASK_STATE_UNSPECIFIED: 'unknown',
} as const;

export type TaskState = keyof typeof words;
export type TaskStateWord = (typeof words)[TaskState];

/** The named fallback. An unknown state does not end a task, so the task counts as working. */
export const unknownState = 'TASK_STATE_UNSPECIFIED' satisfies TaskState;

/** States that a task never leaves (v1.0 section 4.1.3). */
export const terminalStates: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
]);

/** States in which a task waits for its caller. */
export const interruptedStates: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
]);

/** Terminal states without success; a call that ends in one of them failed (RE-24). */
export const failedStates: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
]);

const states = new Map<string, TaskState>(
  (Object.entries(words) as [TaskState, TaskStateWord][]).flatMap(([state, word]) => [
    [state, state],
    [word, state],
  ]),
);
// Spellings that clients use: the v0.3 proto has two L, Reyn writes `running`.
states.set('TASK_STATE_CANCELLED', 'TASK_STATE_CANCELED');
states.set('cancelled', 'TASK_STATE_CANCELED');
states.set('running', 'TASK_STATE_WORKING');

/** True for the canonical name of a state, and for no other spelling. */
export function isTaskState(text: string): text is TaskState {
  return Object.hasOwn(words, text);
}

/** Returns the canonical state for any spelling; `unknownState` when the spelling is unknown. */
export function stateOf(word: string): TaskState {
  return states.get(word) ?? states.get(word.toLowerCase().replaceAll('_', '-')) ?? unknownState;
}

/** States by their numbers in a2a.proto, which are the same in v0.3 and v1.0. */
export const stateNames: readonly TaskState[] = [
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
];

/** Returns the v0.3 word of a state, which people and tools read too. */
export function wordOf(state: TaskState): TaskStateWord {
  return words[state];
}
