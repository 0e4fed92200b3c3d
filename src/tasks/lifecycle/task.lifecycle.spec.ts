import fc from 'fast-check';
import { foldArtifacts } from '../../protocol/a2a/artifacts.js';
import type { Message } from '../../protocol/a2a/model.js';
import { terminalStates, type TaskState } from '../../protocol/a2a/states.js';
import { applyUpdate, cancelTask, mayFollow, openTask, resumeTask, type Step } from './task.lifecycle.js';
import { taskView, type StoredTask } from '../task.types.js';

const states: TaskState[] = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
];
type Update = Parameters<typeof applyUpdate>[1];
let ids = 0;
const step: Step = { now: 1_000, newId: () => `id-${++ids}`, maxWeight: 1_000 };
const message: Message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] };
const principal = { kind: 'user', id: 'bob', role: 'member', groups: [] } as const;
const seed = {
  id: 't' as StoredTask['id'],
  orgId: 'o' as StoredTask['orgId'],
  agentId: 'a' as StoredTask['agentId'],
  agentName: 'echo',
  contextId: 'c',
  principal,
  depth: 0,
};
const fresh = () => openTask(seed, message, step).task;
const inState = (state: TaskState): StoredTask => ({ ...fresh(), state });

describe('the states of a task', () => {
  it.each(states)('%s: only terminal states have no next state, and no state returns to submitted', (from) => {
    for (const to of states)
      expect(mayFollow(from, to)).toBe(!terminalStates.has(from) && to !== 'TASK_STATE_SUBMITTED');
  });

  it('opens with the task itself as its first event, its message in the history with its ids', () => {
    const { task, event } = openTask(seed, message, step);
    expect(task).toMatchObject({ state: 'TASK_STATE_SUBMITTED', seq: 1, statusAt: 1_000 });
    expect(event).toEqual({ seq: 1, body: { task: taskView(task) } });
    expect(task.history).toEqual([{ ...message, taskId: 't', contextId: 'c' }]);
  });

  it('changes with a status update, and adds the previous status message to the history', () => {
    const asked = applyUpdate(
      fresh(),
      { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: '?' }] } } },
      step,
    );
    expect(asked.event.body).toMatchObject({
      statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED' } },
    });
    expect(asked.task.statusMessage).toMatchObject({
      role: 'ROLE_AGENT',
      taskId: 't',
      contextId: 'c',
      parts: [{ text: '?' }],
    });
    const answer = { ...message, messageId: 'm2' };
    const resumed = resumeTask(asked.task, answer, step);
    expect(resumed.task).toMatchObject({ state: 'TASK_STATE_WORKING', seq: 3 });
    expect(resumed.task.statusMessage).toBeUndefined();
    expect(resumed.task.history.map(({ role }) => role)).toEqual(['ROLE_USER', 'ROLE_AGENT', 'ROLE_USER']);
    const done = applyUpdate(resumed.task, { status: { state: 'TASK_STATE_COMPLETED' } }, step);
    expect(done.event.seq).toBe(4);
  });

  it.each(states.filter((state) => terminalStates.has(state)))('%s never changes', (state) => {
    const ended = inState(state);
    expect(() => applyUpdate(ended, { status: { state: 'TASK_STATE_WORKING' } }, step)).toThrow(/the task is/);
    expect(() => applyUpdate(ended, { artifact: { parts: [{ text: 'late' }] } }, step)).toThrow(/the task is/);
    expect(() => resumeTask(ended, message, step)).toThrow(/send a new message/);
  });

  it.each(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'] as const)('%s takes no further message', (state) => {
    expect(() => resumeTask(inState(state), message, step)).toThrow('the task is not waiting for input');
  });

  it('is canceled once: a repeat changes nothing, and another terminal state refuses it', () => {
    expect(cancelTask(fresh(), step)?.task.state).toBe('TASK_STATE_CANCELED');
    expect(cancelTask(inState('TASK_STATE_CANCELED'), step)).toBeUndefined();
    expect(() => cancelTask(inState('TASK_STATE_COMPLETED'), step)).toThrow('the task is completed');
  });

  it('numbers events without gaps and never goes back in time, for any sequence of updates', () => {
    const update = fc.oneof(
      fc.constantFrom(...states).map((state): Update => ({ status: { state } })),
      fc.record({
        artifact: fc.record({ artifactId: fc.constantFrom('x', 'y'), parts: fc.constant([{ text: 't' }]) }),
        append: fc.boolean(),
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(update, fc.integer({ min: 0, max: 5_000 })), { maxLength: 30 }), (updates) => {
        let task = fresh();
        for (const [change, now] of updates as [Update, number][]) {
          try {
            const next = applyUpdate(task, change, { ...step, now });
            expect([next.task.seq, next.event.seq]).toEqual([task.seq + 1, task.seq + 1]);
            expect(next.task.statusAt).toBeGreaterThanOrEqual(task.statusAt);
            expect(terminalStates.has(task.state)).toBe(false);
            task = next.task;
          } catch (error) {
            expect(error).toMatchObject({ code: 'unsupported_operation' });
          }
        }
      }),
    );
  });
});

describe('artifacts', () => {
  const text = (words: string, append?: boolean) =>
    ({
      artifact: { artifactId: 'a', parts: [{ text: words }] },
      ...(append !== undefined && { append }),
    }) satisfies Update;

  it('are new, replaced without append, extended with it', () => {
    let { task } = applyUpdate(fresh(), text('one'), step);
    ({ task } = applyUpdate(task, text('two', true), step));
    expect(task.artifacts).toEqual([{ artifactId: 'a', parts: [{ text: 'one' }, { text: 'two' }] }]);
    ({ task } = applyUpdate(task, text('three'), step));
    expect(task.artifacts).toEqual([{ artifactId: 'a', parts: [{ text: 'three' }] }]);
  });

  it('get an id when they have none', () => {
    const { task, event } = applyUpdate(fresh(), { artifact: { parts: [{ text: 'x' }] }, lastChunk: true }, step);
    expect(task.artifacts[0]!.artifactId).toMatch(/^id-/);
    expect(event.body).toMatchObject({ artifactUpdate: { lastChunk: true, artifact: task.artifacts[0] } });
  });

  it('are the same when they are folded from the log', () => {
    const updates = [
      text('one'),
      text('two', true),
      { artifact: { artifactId: 'b', parts: [{ data: null }] } },
      text('three', true),
    ];
    let task = fresh();
    const events = updates.map((update) => {
      const moved = applyUpdate(task, update, step);
      task = moved.task;
      return moved.event.body;
    });
    expect(foldArtifacts([], events)).toEqual(task.artifacts);
  });
});

describe('the limits of a task', () => {
  const append = (task: StoredTask, letters: number, more: object = { append: true }) =>
    applyUpdate(task, { artifact: { artifactId: 'a', parts: [{ text: 'x'.repeat(letters) }] }, ...more }, step).task;

  it('limit the total size of artifacts, even in small pieces', () => {
    let task = append(fresh(), 100);
    for (let piece = 0; piece < 8; piece++) task = append(task, 100);
    expect(() => append(task, 100)).toThrow(/may hold 1000 characters/);
    expect(append(task, 500, {}).artifacts[0]!.parts).toEqual([{ text: 'x'.repeat(500) }]);
  });

  it('limit the total size of messages', () => {
    const words = (letters: number): Message => ({ ...message, parts: [{ text: 'x'.repeat(letters) }] });
    const asking = (task: StoredTask) =>
      applyUpdate(task, { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: '?' }] } } }, step)
        .task;
    const resumed = asking(resumeTask(asking(fresh()), words(400), step).task);
    expect(() => resumeTask(resumed, words(800), step)).toThrow(/may hold 1000 characters/);
  });
});

describe('the view of a task for callers', () => {
  const long = {
    ...fresh(),
    history: Array.from({ length: 5 }, (_, index) => ({ ...message, messageId: `m${index}` })),
  };

  it.each([
    [undefined, 5],
    [2, 2],
    [9, 5],
  ])('for historyLength %s has the newest %i messages', (historyLength, count) => {
    const { history } = taskView(long, { historyLength });
    expect(history).toEqual(long.history.slice(-count));
  });

  it('has no history for 0, and no artifacts when they are not requested', () => {
    expect(taskView(long, { historyLength: 0 })).not.toHaveProperty('history');
    expect(taskView(long, { artifacts: false })).not.toHaveProperty('artifacts');
  });
});
