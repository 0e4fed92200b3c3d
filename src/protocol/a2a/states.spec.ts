import { failedStates, interruptedStates, stateOf, terminalStates, unknownState, wordOf } from './states.js';

describe('task states', () => {
  it.each([
    ['submitted', 'TASK_STATE_SUBMITTED'],
    ['working', 'TASK_STATE_WORKING'],
    ['completed', 'TASK_STATE_COMPLETED'],
    ['failed', 'TASK_STATE_FAILED'],
    ['canceled', 'TASK_STATE_CANCELED'],
    ['rejected', 'TASK_STATE_REJECTED'],
    ['input-required', 'TASK_STATE_INPUT_REQUIRED'],
    ['auth-required', 'TASK_STATE_AUTH_REQUIRED'],
    ['unknown', 'TASK_STATE_UNSPECIFIED'],
  ] as const)('%s is %s, both ways', (word, state) => {
    expect(stateOf(word)).toBe(state);
    expect(stateOf(state)).toBe(state);
    expect(wordOf(state)).toBe(word);
  });

  it('reads the spellings that clients use', () => {
    expect(['cancelled', 'TASK_STATE_CANCELLED', 'Cancelled'].map(stateOf)).toEqual(
      Array(3).fill('TASK_STATE_CANCELED'),
    );
    expect(['running', 'WORKING'].map(stateOf)).toEqual(Array(2).fill('TASK_STATE_WORKING'));
    expect(stateOf('input_required')).toBe('TASK_STATE_INPUT_REQUIRED');
  });

  it('F29 has a named fallback that is not a terminal state', () => {
    expect(['', 'paused', 'toString', '__proto__', 'constructor'].map(stateOf)).toEqual(Array(5).fill(unknownState));
    expect(terminalStates.has(unknownState) || interruptedStates.has(unknownState)).toBe(false);
  });

  it('every failed state is terminal, and completed is not a failed state', () => {
    expect([...failedStates].every((state) => terminalStates.has(state))).toBe(true);
    expect(failedStates.has('TASK_STATE_COMPLETED')).toBe(false);
  });
});
