import pg from 'pg';
import { migrateDatabase } from '../../src/platform/database/migrate.js';
import { Pg } from '../../src/platform/database/pg.js';
import { Metrics } from '../../src/platform/telemetry/metrics.js';
import { EventSinks } from '../../src/tasks/event-sinks.js';
import { applyUpdate, type Moved } from '../../src/tasks/lifecycle/task.lifecycle.js';
import { TaskListStore } from '../../src/tasks/storage/task-list.store.js';
import { TaskStore } from '../../src/tasks/storage/task.store.js';
import { TaskWriter } from '../../src/tasks/storage/task-writer.js';
import type { NumberedEvent, StoredTask } from '../../src/tasks/task.types.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';
import { inserted, opened, step } from '../support/stubs/task-changes.js';

const answer = 'an answer of some words';
const lineage = { path: ['https://far.example'], trace: { traceId: 'a', spanId: 'b', sampled: false } };
const artifact = { artifact: { artifactId: 'x', parts: [{ text: answer }] } };
type Update = Parameters<typeof applyUpdate>[1];
const completed: Update = { status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: answer }] } } };

/** Applies the updates of an answer to a task; returns the task, and the events with those before. */
function answered({ task, event }: Moved, end = completed) {
  const first = applyUpdate(task, artifact, step);
  const last = applyUpdate(first.task, end, step);
  return { task: last.task, events: [event, first.event, last.event] };
}

function openedWithLineage(): Moved {
  const { task, event } = opened();
  return { task: { ...task, lineage }, event };
}

describe('the rows of a task that ended', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let writer: TaskWriter;
  let store: TaskStore;

  beforeAll(async () => {
    database = await createTestDatabase('task_rows');
    await migrateDatabase(database.url);
    pool = new pg.Pool({ connectionString: database.url, max: 2 });
    writer = new TaskWriter(new Pg(pool), new EventSinks(), new Metrics());
    store = new TaskStore(new Pg(pool));
  });

  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  /** Stores a task that ends at once, or in a second commit. */
  const ends: [string, (end?: Update) => Promise<StoredTask>][] = [
    [
      'in its first commit',
      async (end) => {
        const { task, events } = answered(openedWithLineage(), end);
        await writer.commitInBatch({ task, events, hold: {} });
        return task;
      },
    ],
    [
      'in a later commit',
      async (end) => {
        const first = openedWithLineage();
        await writer.commitInBatch(inserted(first));
        const { task, events } = answered(first, end);
        await writer.commitInBatch({ task, from: first.task, events: events.slice(1), hold: {} });
        return task;
      },
    ],
  ];
  const texts = async ({ id }: StoredTask): Promise<{ row: string; log: string }> =>
    (
      await pool.query(
        `select t::text as row, (select string_agg(e.body::text, '') from a2a_task_events e where task_id = t.id) as log
         from a2a_tasks t
         where id = $1`,
        [id],
      )
    ).rows[0];

  it.each(ends)('%s: the log has each text once, the row has none, and a read has all', async (_what, end) => {
    const task = await end();
    const { row, log } = await texts(task);
    expect(log.split(answer)).toHaveLength(2);
    expect(log.split('hello')).toHaveLength(2);
    expect(log).not.toContain(task.id);
    expect(row).not.toMatch(/answer|hello|far\.example/);
    const { lineage: _lineage, ...kept } = task;
    expect(await store.find(task.id)).toEqual(kept);
  });

  it.each(ends)('%s: a list finds the status message in the log, also without other content', async (_what, end) => {
    const { id, orgId, statusMessage } = await end();
    const lists = new TaskListStore(new Pg(pool), store);
    for (const more of [false, true]) {
      const selection = { artifacts: more, history: more, statusMessage: true };
      const { tasks } = await lists.readPage({ org: orgId }, 100, selection);
      expect(tasks.find(({ task }) => task.id === id)!.task.statusMessage).toEqual(statusMessage);
    }
  });

  it.each(ends)('%s: a status message with metadata is in the row too, for statements', async (_what, end) => {
    const metadata = { errorCode: 'outcome_unknown' };
    const message = { parts: [{ text: answer }], metadata };
    const task = await end({ status: { state: 'TASK_STATE_FAILED', message } });
    const { rows } = await pool.query('select status_message as message from a2a_tasks where id = $1', [task.id]);
    expect(rows[0].message).toEqual(task.statusMessage);
    expect((await store.find(task.id))!.statusMessage).toEqual(task.statusMessage);
  });

  it('are narrow: the row of a task has at most 330 bytes, its log at most 480 beside the texts', async () => {
    const { id } = await ends[0]![1]();
    const { rows } = await pool.query(
      `select pg_column_size(t.*) as task, pg_column_size(e.*) as log
       from a2a_tasks t
       join a2a_task_events e on e.task_id = t.id
       where id = $1`,
      [id],
    );
    expect(rows[0].task).toBeLessThanOrEqual(330);
    expect(rows[0].log - answer.length).toBeLessThanOrEqual(480);
  });

  it('are read by a statement that is not planned each time', async () => {
    const { id } = await ends[0]![1]();
    const one = new pg.Pool({ connectionString: database.url, max: 1 });
    try {
      for (let n = 0; n < 10; n++) await new TaskStore(new Pg(one)).find(id);
      const { rows } = await one.query(
        `select custom_plans::int as planned from pg_prepared_statements where statement like '%a2a_tasks%'`,
      );
      expect(rows).toEqual([{ planned: 5 }]);
    } finally {
      await one.end();
    }
  });

  describe('of an earlier version', () => {
    /** Stores a task, then puts the content into its rows as an earlier version did. */
    async function storeAsBefore(bodies: (events: readonly NumberedEvent[]) => object[], inRow: Partial<StoredTask>) {
      const { task, events } = answered(opened());
      await writer.commitInBatch({ task, events, hold: {} });
      await pool.query('update a2a_task_events set body = $2 where task_id = $1', [
        task.id,
        JSON.stringify(bodies(events)),
      ]);
      await pool.query(
        `update a2a_tasks set history = $2, artifacts = $3, status_message = $4, folded_seq = $5 where id = $1`,
        [
          task.id,
          JSON.stringify(inRow.history ? task.history : []),
          JSON.stringify(inRow.artifacts ? task.artifacts : []),
          JSON.stringify(task.statusMessage),
          inRow.foldedSeq ?? 0,
        ],
      );
      return { task, events };
    }

    it('are read when all content is in the row, and the events refer to it', async () => {
      const { task, events } = await storeAsBefore(
        ([first, , last]) =>
          [
            { opened: (first!.body as any).task.status.timestamp },
            { artifactId: 'x' },
            { state: statusIn(last!).state, timestamp: statusIn(last!).timestamp, said: true },
          ].map((besideTask) => ({ besideTask })),
        { history: [], artifacts: [], foldedSeq: 3 },
      );
      expect(await store.find(task.id)).toEqual({ ...task, foldedSeq: 3 });
      expect(await store.eventsAfter(task.id, 0)).toEqual(events);
    });

    it('are read when the log has complete events, and the row has the status message', async () => {
      const { task, events } = await storeAsBefore((all) => all.map(({ body }) => body), {});
      expect(await store.find(task.id)).toEqual(task);
      expect(await store.eventsAfter(task.id, 0)).toEqual(events);
      expect(await store.eventsBetween(task.id, 1, 2)).toEqual([events[1]!.body]);
    });
  });
});

function statusIn({ body }: NumberedEvent) {
  return (body as Extract<NumberedEvent['body'], { statusUpdate: unknown }>).statusUpdate.status;
}
