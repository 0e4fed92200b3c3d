import pg from 'pg';
import { migrateDatabase } from '../../src/platform/database/migrate.js';
import { Pg } from '../../src/platform/database/pg.js';
import { Metrics } from '../../src/platform/telemetry/metrics.js';
import { EventSinks } from '../../src/tasks/event-sinks.js';
import { applyUpdate, resumeTask } from '../../src/tasks/lifecycle/task.lifecycle.js';
import { briefColumns, taskColumns, TaskStore } from '../../src/tasks/storage/task.store.js';
import { TaskWriter } from '../../src/tasks/storage/task-writer.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';
import { inserted, message, moved, opened, step } from '../support/stubs/task-changes.js';

describe('the content of a task that continues', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let writer: TaskWriter;
  let store: TaskStore;

  beforeAll(async () => {
    database = await createTestDatabase('content');
    await migrateDatabase(database.url);
    pool = new pg.Pool({ connectionString: database.url, max: 6 });
    writer = new TaskWriter(new Pg(pool), new EventSinks(), new Metrics());
    store = new TaskStore(new Pg(pool));
  });

  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  it('is read from the log, also while a process holds the task', async () => {
    const { task } = opened();
    await writer.commitInBatch(
      inserted(
        {
          task: { ...task, epoch: 1 },
          event: { seq: 1, body: { task: { id: task.id, status: { state: task.state } } } },
        },
        { hold: { leaseOwner: 1, leaseMs: 15_000, dueInMs: 0 } },
      ),
    );
    let from = (await store.find(task.id))!;
    for (const text of ['a', 'b', 'c']) {
      const next = applyUpdate(from, { artifact: { artifactId: 'x', parts: [{ text }] }, append: true }, step);
      expect(
        await writer.commitInBatch({
          task: next.task,
          from,
          events: [next.event],
          hold: { leaseOwner: 1, leaseMs: 15_000, dueInMs: 0 },
        }),
      ).toBe(true);
      from = next.task;
    }
    const { rows } = await pool.query('select artifacts::text as artifacts from a2a_tasks where id = $1', [task.id]);
    expect(rows[0].artifacts).toBe('[]');
    expect((await store.find(task.id))!.artifacts).toEqual([
      { artifactId: 'x', parts: ['a', 'b', 'c'].map((text) => ({ text })) },
    ]);
    expect(await writer.commitInBatch(moved(from))).toBe(true);
    expect((await store.find(task.id))!.artifacts[0]!.parts).toHaveLength(3);
  });

  it('is stored once, in the log, until the log is long', async () => {
    const first = inserted();
    await writer.commitInBatch(first);
    const others = new TaskStore(new Pg(pool));
    for (let n = 0; n < 10; n++) {
      const from = (await store.find(first.task.id))!;
      const asked = applyUpdate(
        from,
        { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: `question ${n}` }] } } },
        step,
      );
      const answer = { ...message, messageId: `m${n}`, parts: [{ text: `answer ${n}` }] };
      const resumed = resumeTask(asked.task, answer, step);
      const events = [asked.event, resumed.event];
      expect(await writer.commitInBatch({ task: resumed.task, from, events, hold: {} })).toBe(true);
      for (const one of [store, others]) expect((await one.find(from.id))!.history).toEqual(resumed.task.history);
    }
    const { rows } = await pool.query(
      `select seq, folded_seq, json_array_length(history) as messages from a2a_tasks where id = $1`,
      [first.task.id],
    );
    expect(rows).toEqual([{ seq: 21, folded_seq: 17, messages: 17 }]);
  });

  it('reads the log again for a row that is newer than its log', async () => {
    const { task } = inserted();
    const { event } = opened();
    await writer.commitInBatch(inserted({ task, event }));
    const { rows } = await pool.query(`select ${taskColumns()} from a2a_tasks t where id = $1`, [task.id]);
    const next = applyUpdate(task, { artifact: { artifactId: 'x', parts: [{ text: 'later' }] } }, step);
    await writer.commitInBatch({ task: next.task, from: task, events: [next.event], hold: {} });
    const [read] = await store.fold([{ ...rows[0], seq: 2 }]);
    expect(read!.artifacts).toEqual([{ artifactId: 'x', parts: [{ text: 'later' }] }]);
  });

  it('is complete in the claim of a task with a long log; a later change ends the claim', async () => {
    const { task } = inserted();
    await writer.commitInBatch(inserted({ task, event: opened().event }));
    let last = task;
    const events = Array.from({ length: 20 }, (_, n) => {
      const moved = applyUpdate(last, { artifact: { artifactId: `x${n}`, parts: [{ text: 'y' }] } }, step);
      last = moved.task;
      return moved.event;
    });
    await writer.commitInBatch({ task: last, from: task, events, hold: { leaseOwner: 1, leaseMs: 15_000 } });
    const { rows } = await pool.query(`select ${briefColumns()} from a2a_tasks t where id = $1`, [task.id]);
    expect(rows[0]).toMatchObject({ seq: 21, history: null, artifacts: null, log: null });
    const whole = { seq: 21, artifacts: last.artifacts };
    for (const stale of [{ seq: 20 }, { lease_epoch: 7 }])
      expect(await new TaskStore(new Pg(pool)).ofBriefRows([{ ...rows[0], ...stale }])).toEqual([undefined]);
    expect(await store.ofBriefRows(rows)).toEqual([expect.objectContaining(whole)]);
    const memo = { ...rows[0], lease_epoch: 7, memo: 'remembered' };
    expect(await store.ofBriefRows([memo])).toEqual([
      expect.objectContaining({ ...whole, epoch: 7, memo: 'remembered' }),
    ]);
    expect(await store.ofBriefRows([{ ...rows[0], seq: 20 }])).toEqual([undefined]);
  });
});
