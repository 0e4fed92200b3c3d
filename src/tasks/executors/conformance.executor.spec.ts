import type { Message } from '../../protocol/a2a/model.js';
import type { TaskRun, TaskUpdate } from '../executor.port.js';
import { ConformanceExecutor } from './conformance.executor.js';

const messageOf = (text: string): Message => ({ messageId: 'm', role: 'ROLE_USER', parts: [{ text }] });
const never = new AbortController().signal;

/** The updates of a run for the last of these messages of one task. */
async function answerTo(...texts: string[]): Promise<TaskUpdate[]> {
  const history = texts.map(messageOf);
  const run = {
    agent: { versions: ['1.0'] },
    message: history.at(-1),
    task: { history, state: texts.length > 1 ? 'TASK_STATE_WORKING' : 'TASK_STATE_SUBMITTED' },
    signal: never,
  } as unknown as TaskRun;
  const updates: TaskUpdate[] = [];
  for await (const update of new ConformanceExecutor().execute(run)) updates.push(update);
  return updates;
}

describe('the conformance agent', () => {
  it.each([
    [['tck-multi-turn start'], 'TASK_STATE_INPUT_REQUIRED'],
    [['tck-multi-turn start', 'tck-multi-turn more'], 'TASK_STATE_INPUT_REQUIRED'],
    [['tck-multi-turn start', 'more', 'and more'], 'TASK_STATE_INPUT_REQUIRED'],
    [['tck-multi-turn start', 'more', 'done'], 'TASK_STATE_COMPLETED'],
    [['tck-multi-turn start', 'tck-multi-turn done'], 'TASK_STATE_COMPLETED'],
    [['tck-input-required', 'more'], 'TASK_STATE_COMPLETED'],
    [['tck-multi-turn start', 'tck-complete-task'], 'TASK_STATE_COMPLETED'],
  ])('K11 asks until a message contains "done": %j', async (texts, state) => {
    expect(await answerTo(...texts)).toMatchObject([{ status: { state } }]);
  });

  it('K11 adds an artifact in a long run', async () => {
    const updates = await answerTo('tck-long-running');
    expect(updates).toMatchObject([
      { status: { state: 'TASK_STATE_WORKING' } },
      { artifact: { parts: [{ text: expect.any(String) }] } },
      { status: { state: 'TASK_STATE_COMPLETED' } },
    ]);
  });
});
