import fc from 'fast-check';
import type { Artifact } from '../../protocol/a2a/model.js';
import { terminalStates } from '../../protocol/a2a/states.js';
import type { Said, TaskUpdate } from '../executor.port.js';
import { bodyFromStore, contentAfter, eventsOfRows, rowToStore, type EventsRow } from './stored-event.js';
import { applyUpdate, openTask, resumeTask, type Moved } from '../lifecycle/task.lifecycle.js';
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

/** Applies updates to a new task, and answers each of its questions; returns the task and its events. */
function lifeOf(updates: readonly Update[]): { task: StoredTask; events: NumberedEvent[] } {
  let now = 1_000;
  let ids = 0;
  const step = () => ({ now: (now += 7), newId: () => `id-${++ids}`, maxWeight: 10_000 });
  let moved: Moved = openTask(seed, { messageId: 'm', role: 'ROLE_USER', parts: [{ text: words }] }, step());
  const events = [moved.event];
  for (const update of updates) {
    moved = applyUpdate(moved.task, update, step());
    events.push(moved.event);
    if (moved.task.state !== 'TASK_STATE_INPUT_REQUIRED') continue;
    moved = resumeTask(moved.task, { messageId: 'r', role: 'ROLE_USER', parts: [{ text: 'answer' }] }, step());
    events.push(moved.event);
  }
  return { task: moved.task, events };
}

const copy = <Value>(value: Value) => JSON.parse(JSON.stringify(value)) as Value;
const stored = (task: StoredTask, events: readonly NumberedEvent[]): EventsRow => copy(rowToStore(task, events, true));

const end: Update = { status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: words }] } } };

const message = fc.option(fc.constant<Said>({ parts: [{ text: words }] }), { nil: undefined });
const metadata = fc.option(fc.constant({ more: true }), { nil: undefined });
const artifact = fc.record<Artifact>({
  artifactId: fc.constantFrom('x', 'y'),
  parts: fc.constantFrom([{ text: 'a' }], [{ text: 'b' }]),
});
const updateTo = (...states: ('TASK_STATE_WORKING' | 'TASK_STATE_INPUT_REQUIRED')[]): fc.Arbitrary<Update> =>
  fc.oneof(
    fc.record({ artifact, append: fc.boolean(), lastChunk: fc.boolean(), metadata }),
    fc.record({ status: fc.record({ state: fc.constantFrom(...states), message }), metadata }),
  );

describe('the events of a task that one commit creates and ends', () => {
  it('hold nothing that the row of the task holds', () => {
    const artifact = { artifactId: 'x', parts: [{ text: words }] };
    const { task, events } = lifeOf([{ status: { state: 'TASK_STATE_WORKING' } }, { artifact, lastChunk: true }, end]);
    const row = stored(task, events);
    expect(row).toEqual({ first_seq: 1, seq: 4, body: events.map(() => ({ besideTask: expect.anything() })) });
    expect(JSON.stringify(row)).not.toContain(words);
  });

  it('are restored unchanged for any sequence of updates', () => {
    const last = fc
      .record({ status: fc.record({ state: fc.constantFrom(...terminalStates), message }), metadata })
      .map((update): Update => update);
    fc.assert(
      fc.property(fc.array(updateTo('TASK_STATE_WORKING'), { maxLength: 12 }), last, (updates, ending) => {
        const { task, events } = lifeOf([...updates, ending]);
        const read = eventsOfRows([stored(task, events)]);
        const restored = read.map(({ seq, body }) => ({ seq, body: bodyFromStore(copy(task), body) }));
        expect(copy(restored)).toEqual(copy(events.map(({ seq, body }) => ({ seq, body }))));
      }),
    );
  });
});

/** The rows of the log when a commit begins with the first event and with each of the given ones. */
function rowsOf(task: StoredTask, events: readonly NumberedEvent[], begins: readonly NumberedEvent[]): EventsRow[] {
  const starts = [0, ...begins.map(({ seq }) => seq - 1), events.length];
  return starts.slice(1).map((next, index) => copy(rowToStore(task, events.slice(starts[index], next), false)));
}

it('the log of a task that continues has its messages and artifacts, from the beginning and after any event', () => {
  const updates = fc.array(updateTo('TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED'), { maxLength: 12 });
  fc.assert(
    fc.property(updates, fc.nat(30), (all, copied) => {
      const { task, events } = lifeOf(all);
      const rows = rowsOf(task, events, events.slice(1));
      const bodies = (from: number, to?: number) => eventsOfRows(rows.slice(from, to)).map(({ body }) => body);
      const row = contentAfter({ history: [], artifacts: [] }, bodies(0, copied));
      const { history, artifacts } = task;
      expect(contentAfter(row, bodies(copied))).toEqual(copy({ history, artifacts }));
    }),
  );
});

it('stores events unchanged when their task continues or existed before', () => {
  const { task, events } = lifeOf([{ status: { state: 'TASK_STATE_WORKING' } }]);
  const bodies = events.map(({ body }) => body);
  expect(rowToStore(task, events, true)).toEqual({ first_seq: 1, seq: 2, body: bodies });
  const { task: ended, events: all } = lifeOf([end]);
  expect(rowToStore(ended, all.slice(1), false)).toEqual({ first_seq: null, seq: 2, body: all[1]!.body });
});

it('reads the same events from any commits, from any number to any other', () => {
  const { task, events } = lifeOf(Array.from({ length: 9 }, () => ({ status: { state: 'TASK_STATE_WORKING' } })));
  fc.assert(
    fc.property(fc.subarray(events.slice(1)), fc.nat(12), fc.nat(12), (commits, after, until) => {
      const rows = rowsOf(task, events, commits);
      expect(eventsOfRows(rows, { after, until })).toEqual(events.filter(({ seq }) => seq > after && seq <= until));
    }),
  );
});
