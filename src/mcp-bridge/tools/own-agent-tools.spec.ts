import { taskResult } from './own-agent-tools.js';

describe('taskResult', () => {
  const textOf = (state: string, text?: string) => {
    const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] } as const;
    const task = { id: 't1', contextId: 'c', status: { state, ...(text !== undefined && { message }) } };
    const [first] = taskResult(task as Parameters<typeof taskResult>[0]).content;
    return (first as { text: string }).text;
  };

  it('says how to ask for a task that goes on', () => {
    for (const [state, word] of [
      ['TASK_STATE_SUBMITTED', 'submitted'],
      ['TASK_STATE_WORKING', 'working'],
    ] as const)
      expect(textOf(state)).toBe(
        `${word}\n\n(${word}; taskId t1). Ask again with the tool task_status and this taskId.`,
      );
  });

  it('gives the id of a task that waits for an answer, and none of a task that ended', () => {
    expect(textOf('TASK_STATE_INPUT_REQUIRED', 'Which one?')).toBe('Which one?\n\n(input-required; taskId t1)');
    expect(textOf('TASK_STATE_COMPLETED', 'Done.')).toBe('Done.');
  });
});
