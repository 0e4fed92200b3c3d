import type { JsonObject } from '../../../kernel/json.js';
import type { Message, Part, Task } from '../model.js';
import { runView } from './run-view.js';
import type { TaskState } from '../states.js';
import { encodeTask } from '../v03/objects.js';

const statusMessage = (parts: Part[], metadata?: JsonObject): Message => ({
  messageId: 'm1',
  role: 'ROLE_AGENT',
  parts,
  ...(metadata && { metadata }),
});
const view = (state: TaskState, message?: Message, artifacts?: Task['artifacts']) => {
  const task: Task = { id: 't1', contextId: 'c1', status: { state, message }, artifacts };
  const { task: whole, ...facts } = runView(task, 'echo');
  expect(whole).toStrictEqual(encodeTask(task));
  return facts;
};
const flat = { run_id: 't1', agent_name: 'echo', question: null, result: null, error: null };

describe('runView', () => {
  it.each<[TaskState, string]>([
    ['TASK_STATE_SUBMITTED', 'running'],
    ['TASK_STATE_WORKING', 'running'],
    ['TASK_STATE_UNSPECIFIED', 'running'],
    ['TASK_STATE_COMPLETED', 'completed'],
    ['TASK_STATE_CANCELED', 'cancelled'],
    ['TASK_STATE_INPUT_REQUIRED', 'input-required'],
    ['TASK_STATE_AUTH_REQUIRED', 'input-required'],
  ])('%s is %s', (state, status) => expect(view(state)).toStrictEqual({ ...flat, status }));

  it('has the reason of a failure, or the word for its state', () => {
    expect(view('TASK_STATE_FAILED', statusMessage([{ text: 'no disk' }]))).toStrictEqual({
      ...flat,
      status: 'failed',
      error: 'no disk',
    });
    expect(view('TASK_STATE_FAILED').error).toBe('failed');
    expect(view('TASK_STATE_REJECTED')).toStrictEqual({ ...flat, status: 'failed', error: 'rejected' });
  });

  it('takes the result from the status, or else from the artifacts', () => {
    const artifacts = [
      { artifactId: 'a', parts: [{ text: 'one' }, { data: 1 }] },
      { artifactId: 'b', parts: [{ text: '' }, { text: 'two' }] },
    ];
    expect(view('TASK_STATE_COMPLETED', statusMessage([{ text: 'done' }]), artifacts).result).toBe('done');
    expect(view('TASK_STATE_COMPLETED', statusMessage([{ data: {} }]), artifacts).result).toBe('one\ntwo');
    const data = [{ artifactId: 'a', parts: [{ data: { n: 1 } }] }];
    expect(view('TASK_STATE_COMPLETED', undefined, data).result).toBe('{"n":1}');
    expect(view('TASK_STATE_COMPLETED', undefined, [...data, ...data]).result).toBe('[{"n":1},{"n":1}]');
    expect(view('TASK_STATE_WORKING', statusMessage([{ text: 'soon' }]), artifacts)).toStrictEqual({
      ...flat,
      status: 'running',
    });
  });

  const choices = [{ id: 'y', label: 'Yes', hotkey: 'y' }];
  it('shows the question with its choices, from metadata or a data part', () => {
    const facts = { ...flat, status: 'input-required', question: 'Sure?', kind: 'choice', choices, detail: { a: 1 } };
    const extra = { kind: 'choice', choices, detail: { a: 1 } } as JsonObject;
    expect(view('TASK_STATE_INPUT_REQUIRED', statusMessage([{ text: 'Sure?' }], extra))).toStrictEqual(facts);
    expect(view('TASK_STATE_INPUT_REQUIRED', statusMessage([{ text: 'Sure?' }, { data: extra }]))).toStrictEqual(facts);
  });

  it('drops malformed choices', () =>
    expect(
      view(
        'TASK_STATE_INPUT_REQUIRED',
        statusMessage([], {
          kind: 7,
          choices: [{ id: 'a' }, { id: 'b', label: 'B', hotkey: 1, secret: 's' }, { label: 'x' }, 'y'],
        }),
      ),
    ).toStrictEqual({
      ...flat,
      status: 'input-required',
      choices: [
        { id: 'a', label: 'a' },
        { id: 'b', label: 'B' },
      ],
    }));
});
