import fc from 'fast-check';
import type { Artifact } from '../../protocol/a2a/model.js';
import { terminalStates } from '../../protocol/a2a/states.js';
import type { Said, TaskUpdate } from '../executor.port.js';
import { bodyFromStore, bodyToStore, type StoredBody } from './stored-event.js';
import { applyUpdate, openTask, type Moved } from '../lifecycle/task.lifecycle.js';
import type { NumberedEvent, StoredTask } from '../task.types.js';

type Update = Extract<TaskUpdate, { status: unknown } | { artifact: unknown }>;

const words = 'a message text';
const seed = {
  id: 't' as StoredTask['id'],
  orgId: 'o' as StoredTask['orgId'],
  agentId: 'a' as StoredTask['agentId'],
  agentName: 'echo',
  contextId: 'c',
  principal: { kind: 'user', id: 'bob', role: 'member', groups: [] },
  depth: 0,
  metadata: { from: 'afar' },
} as const;

/** Applies updates to a new task; returns the task and its events. */
function lifeOf(updates: readonly Update[]): { task: StoredTask; events: NumberedEvent[] } {
  let now = 1_000;
  let ids = 0;
  const step = () => ({ now: (now += 7), newId: () => `id-${++ids}`, maxWeight: 10_000 });
  let moved: Moved = openTask(seed, { messageId: 'm', role: 'ROLE_USER', parts: [{ text: words }] }, step());
  const events = [moved.event];
  for (const update of updates) {
    moved = applyUpdate(moved.task, update, step());
    events.push(moved.event);
  }
  return { task: moved.task, events };
}

const stored = (task: StoredTask, event: NumberedEvent, isNew = true): StoredBody =>
  JSON.parse(JSON.stringify(bodyToStore(task, event, isNew))) as StoredBody;

const end: Update = { status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: words }] } } };

describe('the events of a task that one commit creates and ends', () => {
  it('hold nothing that the row of the task holds', () => {
    const artifact = { artifactId: 'x', parts: [{ text: words }] };
    const { task, events } = lifeOf([{ status: { state: 'TASK_STATE_WORKING' } }, { artifact, lastChunk: true }, end]);
    const bodies = events.map((event) => stored(task, event));
    expect(bodies).toEqual(bodies.map(() => ({ besideTask: expect.anything() })));
    expect(JSON.stringify(bodies)).not.toContain(words);
  });

  it('are restored unchanged for any sequence of updates', () => {
    const message = fc.option(fc.constant<Said>({ parts: [{ text: words }] }), { nil: undefined });
    const metadata = fc.option(fc.constant({ more: true }), { nil: undefined });
    const artifact = fc.record<Artifact>({
      artifactId: fc.constantFrom('x', 'y'),
      parts: fc.constantFrom([{ text: 'a' }], [{ text: 'b' }]),
    });
    const update: fc.Arbitrary<Update> = fc.oneof(
      fc.record({ artifact, append: fc.boolean(), lastChunk: fc.boolean(), metadata }),
      fc.record({ status: fc.record({ state: fc.constant('TASK_STATE_WORKING' as const), message }), metadata }),
    );
    const last = fc
      .record({ status: fc.record({ state: fc.constantFrom(...terminalStates), message }), metadata })
      .map((update): Update => update);
    fc.assert(
      fc.property(fc.array(update, { maxLength: 12 }), last, (updates, ending) => {
        const { task, events } = lifeOf([...updates, ending]);
        const row = JSON.parse(JSON.stringify(task)) as StoredTask;
        for (const event of events)
          expect(JSON.parse(JSON.stringify(bodyFromStore(row, stored(task, event))))).toEqual(
            JSON.parse(JSON.stringify(event.body)),
          );
      }),
    );
  });
});

it('stores an event unchanged when its task continues or existed before', () => {
  const { task, events } = lifeOf([{ status: { state: 'TASK_STATE_WORKING' } }]);
  expect(events.map((event) => bodyToStore(task, event, true))).toEqual(events.map(({ body }) => body));
  const ended = lifeOf([end]);
  expect(ended.events.map((event) => bodyToStore(ended.task, event, false))).toEqual(
    ended.events.map(({ body }) => body),
  );
});
