import fc from 'fast-check';
import type { Artifact } from '../../protocol/a2a/model.js';
import type { Said, TaskUpdate } from '../executor.port.js';
import { completedEvent, contentAfter, eventsOfRows, rowToStore, type EventsRow } from './stored-event.js';
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

/** The rows of the log when a commit begins with the first event and with each of the given ones. */
function rowsOf(
  task: StoredTask,
  events: readonly NumberedEvent[],
  begins: readonly NumberedEvent[] = [],
): EventsRow[] {
  const starts = [0, ...begins.map(({ seq }) => seq - 1), events.length];
  return starts.slice(1).map((next, index) => copy(rowToStore(task, events.slice(starts[index], next))));
}

const lives = fc.array(updateTo('TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED'), { maxLength: 12 }).map(lifeOf);

describe('a row of the log', () => {
  it('has no ids of its task, each text once, and each time once', () => {
    const artifact = { artifactId: 'x', parts: [{ text: 'the answer' }] };
    const said: Update = { status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: 'the answer' }] } } };
    const { task, events } = lifeOf([{ artifact, lastChunk: true }, said]);
    const at = new Date(task.statusAt).toISOString();
    const row = copy(rowToStore(task, events));
    expect(row).toEqual({
      first_seq: 1,
      seq: 3,
      body: [
        {
          task: {
            status: { state: 'TASK_STATE_SUBMITTED', timestamp: expect.any(String) },
            artifacts: [],
            history: [{ messageId: 'm', role: 'ROLE_USER', parts: [{ text: words }] }],
            metadata: seed.metadata,
          },
        },
        { artifactUpdate: { artifact, lastChunk: true } },
        {
          statusUpdate: {
            status: {
              state: 'TASK_STATE_COMPLETED',
              timestamp: at,
              message: { messageId: 'id-1', role: 'ROLE_AGENT', parts: 1 },
            },
          },
        },
      ],
    });
    const sameTime = [events[2]!, { ...events[2]!, seq: 4 }];
    expect(JSON.stringify(rowToStore(task, sameTime)).split(at)).toHaveLength(2);
  });

  it('is restored unchanged, for any life of a task and any commits', () => {
    fc.assert(
      fc.property(lives, fc.infiniteStream(fc.boolean()), ({ task, events }, begins) => {
        const starts = events.slice(1).filter(() => begins.next().value);
        expect(copy(eventsOfRows(task, rowsOf(task, events, starts)))).toEqual(copy(events));
      }),
    );
  });

  it('stores ids of other tasks, and restores them', () => {
    const { task, events } = lifeOf([]);
    const ids = { taskId: 'other', contextId: 'elsewhere' };
    const other: NumberedEvent = {
      seq: 2,
      body: { statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING' } } },
    };
    expect(copy(eventsOfRows(task, rowsOf(task, [events[0]!, other])))[1]).toMatchObject({
      body: { statusUpdate: ids },
    });
  });

  it('keeps an event without its artifact apart from the others', () => {
    const { task, events } = lifeOf([]);
    const damaged: EventsRow = { first_seq: 1, seq: 2, body: [events[0]!.body, { artifactUpdate: {} } as never] };
    expect(eventsOfRows(task, [damaged])).toHaveLength(2);
  });

  it('compares a list of parts with few others, so that a commit of many costs little', () => {
    const parts = (n: number) => [{ text: String(n) }];
    const many = Array.from({ length: 100 }, (_, n): Update => ({ artifact: { artifactId: `${n}`, parts: parts(n) } }));
    const { task, events } = lifeOf([...many, ...many.slice(-1), ...many.slice(0, 1)]);
    const text = JSON.stringify(rowToStore(task, events));
    expect(text.split('"text":"99"')).toHaveLength(2);
    expect(text.split('"text":"0"')).toHaveLength(3);
  });
});

it('the log of a task has its content, from the beginning and after any event', () => {
  fc.assert(
    fc.property(lives, fc.nat(30), ({ task, events }, copied) => {
      const rows = rowsOf(task, events, events.slice(1));
      const inRow = contentAfter({ history: [], artifacts: [] }, eventsOfRows(task, rows.slice(0, copied)));
      const { history, artifacts, statusMessage } = task;
      const content = contentAfter(inRow, eventsOfRows(task, rows.slice(copied)));
      expect(content).toEqual({ ...copy({ history, artifacts }), statusMessage });
    }),
  );
});

it('reads the same events from any commits, from any number to any other', () => {
  const { task, events } = lifeOf(Array.from({ length: 9 }, () => ({ status: { state: 'TASK_STATE_WORKING' } })));
  fc.assert(
    fc.property(fc.subarray(events.slice(1)), fc.nat(12), fc.nat(12), (commits, after, until) => {
      const read = copy(eventsOfRows(task, rowsOf(task, events, commits), { after, until }));
      expect(read).toEqual(copy(events.filter(({ seq }) => seq > after && seq <= until)));
    }),
  );
});

describe('a row of an earlier version', () => {
  const { task, events } = lifeOf([
    { status: { state: 'TASK_STATE_WORKING' } },
    { artifact: { artifactId: 'x', parts: [{ text: 'a' }] }, lastChunk: true },
    end,
  ]);

  it('is read when its events are complete', () => {
    const bodies = events.map(({ body }) => body);
    expect(eventsOfRows(task, [copy({ first_seq: 1, seq: 4, body: bodies })])).toEqual(copy(events));
    const answered = { event: bodies[1]!, messages: [...task.history] };
    expect(eventsOfRows(task, [copy({ first_seq: null, seq: 2, body: answered })])).toEqual(
      copy([{ seq: 2, body: bodies[1], messages: task.history }]),
    );
  });

  it('is read when its events refer to the row of their task', () => {
    const at = (index: number) => {
      const body = events[index]!.body as any;
      return (body.task ?? body.statusUpdate).status.timestamp as string;
    };
    const besides = [
      { opened: at(0) },
      { state: 'TASK_STATE_WORKING', timestamp: at(1) },
      { artifactId: 'x', lastChunk: true },
      { state: 'TASK_STATE_COMPLETED', timestamp: at(3), said: true },
    ] as const;
    const read = eventsOfRows(task, [{ first_seq: 1, seq: 4, body: besides.map((besideTask) => ({ besideTask })) }]);
    expect(contentAfter(task, read)).toEqual({
      history: task.history,
      artifacts: task.artifacts,
      statusMessage: task.statusMessage,
    });
    expect(copy(read.map((event) => completedEvent(copy(task), event)))).toEqual(copy(events));
    expect(completedEvent(undefined, read[0]!)).toBeUndefined();
  });
});
