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

/** The named fallback: a state we do not know is not an end, so its task is still working (F29). */
export const unknownState = 'TASK_STATE_UNSPECIFIED' satisfies TaskState;

/** Never left again (v1.0 section 4.1.3). */
export const terminalStates: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
]);

/** Waits for its caller. */
export const interruptedStates: ReadonlySet<TaskState> = new Set<TaskState>([
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
]);

/** Terminal ends that are no success; a call answered with one has failed (RE-24). */
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
// Spellings in the field: the v0.3 proto has two L, Reyn says running (requirements.md 1.6 C4).
states.set('TASK_STATE_CANCELLED', 'TASK_STATE_CANCELED');
states.set('cancelled', 'TASK_STATE_CANCELED');
states.set('running', 'TASK_STATE_WORKING');

/** True for the canonical name of a state, and no other spelling. */
export function isTaskState(text: string): text is TaskState {
  return Object.hasOwn(words, text);
}

/** A state in any spelling to the canonical one; what nobody knows is `unknownState`. */
export function stateOf(word: string): TaskState {
  return states.get(word) ?? states.get(word.toLowerCase().replaceAll('_', '-')) ?? unknownState;
}

/** States by their number in a2a.proto, the same in v0.3 and v1.0. */
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

/** The v0.3 word of a state, which is also the one people and tools read. */
export function wordOf(state: TaskState): TaskStateWord {
  return words[state];
}
