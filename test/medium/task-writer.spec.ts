import pg from 'pg';
import type { TaskId } from '../../src/kernel/ids.js';
import { migrateDatabase } from '../../src/platform/database/migrate.js';
import { Pg } from '../../src/platform/database/pg.js';
import { isGone, Presence } from '../../src/platform/database/presence.js';
import type { RowStatement } from '../../src/platform/database/row-writer.js';
import { createLogger } from '../../src/platform/telemetry/logger.js';
import { Metrics } from '../../src/platform/telemetry/metrics.js';
import { EventSinks } from '../../src/tasks/event-sinks.js';
import { TaskChanges } from '../../src/tasks/lifecycle/task-changes.js';
import { TaskLeases } from '../../src/tasks/storage/task-lease.store.js';
import { applyUpdate } from '../../src/tasks/lifecycle/task.lifecycle.js';
import { TaskStore } from '../../src/tasks/storage/task.store.js';
import { TaskWriter } from '../../src/tasks/storage/task-writer.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';
import { eventually } from '../support/gateway/eventually.js';
import { eventRows } from '../support/gateway/event-rows.js';
import { inserted, moved, opened, org, step } from '../support/stubs/task-changes.js';

const note: RowStatement = {
  name: 'note',
  sql: (rows) => `insert into notes select (r->>'task_id')::uuid from jsonb_array_elements(${rows}) r`,
};

describe('the write path of tasks', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let writer: TaskWriter;
  let store: TaskStore;
  const sinks = new EventSinks();

  beforeAll(async () => {
    database = await createTestDatabase('tasks');
    await migrateDatabase(database.url);
    pool = new pg.Pool({ connectionString: database.url, max: 6 });
    await pool.query('create table notes (task_id uuid)');
    await pool.query('create table told (task_id uuid, org_id uuid, seq integer)');
    sinks.add({ name: 'told', sql: (events) => `insert into told select task_id, org_id, seq from ${events} e` });
    writer = new TaskWriter(new Pg(pool), sinks, new Metrics());
    store = new TaskStore(new Pg(pool));
  });

  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  const seqs = async (id: string): Promise<number[]> =>
    (await pool.query<{ seq: number }>(`select seq from ${eventRows} where task_id = $1 order by seq`, [id])).rows.map(
      ({ seq }) => seq,
    );

  const told = async (id: string) =>
    (await pool.query('select org_id, seq from told where task_id = $1 order by seq', [id])).rows;

  it('takes the start of a status from the clock of the database, for any timestamp of the status', async () => {
    const change = inserted();
    await writer.commitInBatch(change);
    const working = moved(change.task, 'TASK_STATE_WORKING');
    expect(working.task.statusAt).toBe(change.task.statusAt); // the timestamp of a process with a slow clock
    await writer.commitInBatch(working);
    const since = async () =>
      (await pool.query('select status_since from a2a_tasks where id = $1', [change.task.id])).rows[0].status_since;
    const first = await since();
    expect(first).toBeInstanceOf(Date);
    const artifact = applyUpdate(working.task, { artifact: { parts: [{ text: 'x' }] } }, step);
    await writer.commitInBatch({ task: artifact.task, from: working.task, events: [artifact.event], hold: {} });
    expect(await since()).toEqual(first);
    await writer.commitInBatch(moved(artifact.task, 'TASK_STATE_WORKING'));
    expect((await since()) > first).toBe(true);
  });

  it('commits a task and its events, and reads the same back', async () => {
    const change = inserted();
    expect(await writer.commitInBatch(change)).toBe(true);
    expect(await store.find(change.task.id)).toEqual(change.task);
  });

  it('stores the events of a commit in one row, and reads any part of them', async () => {
    const change = inserted();
    await writer.commitInBatch(change);
    const events = [];
    let { task } = change;
    for (let index = 0; index < 5; index++) {
      const next = applyUpdate(task, { artifact: { parts: [{ text: `part ${index}` }] } }, step);
      events.push(next.event);
      task = next.task;
    }
    await writer.commitInBatch({ task, from: change.task, events, hold: {} });
    await writer.commitInBatch(moved(task));
    const rows = 'select first_seq, seq, terminal from a2a_task_events where task_id = $1 order by seq';
    expect((await pool.query(rows, [task.id])).rows).toEqual([
      { first_seq: null, seq: 1, terminal: false },
      { first_seq: 2, seq: 6, terminal: false },
      { first_seq: null, seq: 7, terminal: true },
    ]);
    expect((await told(task.id)).map(({ seq }) => seq)).toEqual([2, 3, 4, 5, 6, 7]);
    const all = await store.eventsAfter(task.id, 0);
    expect(all.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(all.slice(1, 6)).toEqual(events);
    for (let after = 0; after <= 7; after++) {
      expect(await store.eventsAfter(task.id, after)).toEqual(all.slice(after));
      for (let until = after; until <= 8; until++)
        expect(await store.eventsBetween(task.id, after, until)).toEqual(
          all.slice(after, until).map(({ body }) => body),
        );
    }
  });

  it('reports to one of two equal writers that it lost, although the stored row looks like its own', async () => {
    const change = inserted();
    await writer.commitInBatch(change);
    const feed = { notifyReaders: () => undefined } as any;
    const changes = new TaskChanges(writer, feed, store, {} as any, { RIALTO_MAX_BODY_BYTES: 1 } as any);
    const equal = moved(change.task, 'TASK_STATE_WORKING');
    expect(await Promise.all([changes.commitAndNotify(equal), changes.commitAndNotify(equal)])).toEqual([true, false]);
  });

  it('sends no notice of a new task, which no other process can wait for', async () => {
    const told: boolean[] = [];
    const feed = { notifyReaders: (_task: unknown, _events: unknown, isLocal: boolean) => told.push(isLocal) } as any;
    const changes = new TaskChanges(writer, feed, store, {} as any, { RIALTO_MAX_BODY_BYTES: 1 } as any);
    const change = inserted();
    await changes.commitAndNotify(change);
    await changes.commitAndNotify(moved(change.task, 'TASK_STATE_WORKING'));
    expect(told).toEqual([true, false]);
  });

  it('asks sinks about the events of existing tasks, also in a batch with new ones', async () => {
    const change = inserted();
    await writer.commitInBatch(change);
    expect(await told(change.task.id)).toEqual([]);
    const fresh = inserted();
    await Promise.all([
      writer.commitInBatch(inserted()),
      writer.commitInBatch(moved(change.task, 'TASK_STATE_WORKING')),
      writer.commitInBatch(fresh),
    ]);
    expect(await told(change.task.id)).toEqual([{ org_id: org, seq: 2 }]);
    expect(await told(fresh.task.id)).toEqual([]);
  });

  it('gives each of many racers its own outcome: one change of a task wins, at every step', async () => {
    const { task } = inserted();
    await writer.commitInBatch(
      inserted({ task, event: { seq: 1, body: { task: { id: task.id, status: { state: task.state } } } } }),
    );
    for (let round = 0; round < 20; round++) {
      const from = (await store.find(task.id))!;
      const state = round < 19 ? 'TASK_STATE_WORKING' : 'TASK_STATE_COMPLETED';
      const outcomes = await Promise.all(Array.from({ length: 12 }, () => writer.commitInBatch(moved(from, state))));
      expect(outcomes.filter(Boolean)).toHaveLength(1);
    }
    expect(await seqs(task.id)).toEqual(Array.from({ length: 21 }, (_, index) => index + 1));
    const { rows } = await pool.query(
      'select count(*)::int as ends from a2a_task_events where task_id = $1 and terminal',
      [task.id],
    );
    expect(rows).toEqual([{ ends: 1 }]);
  });

  it('I8: a writer of an older epoch changes nothing, and after the end no writer changes anything', async () => {
    const change = inserted();
    await writer.commitInBatch(change);
    await pool.query('update a2a_tasks set lease_epoch = 7 where id = $1', [change.task.id]);
    expect(await writer.commitInBatch(moved(change.task))).toBe(false);
    const taken = (await store.find(change.task.id))!;
    expect(await writer.commitInBatch(moved(taken))).toBe(true);
    const ended = (await store.find(change.task.id))!;
    const late = { ...moved(taken), from: ended, task: { ...ended, seq: ended.seq + 1 } };
    expect(await writer.commitInBatch({ ...late, events: [{ seq: ended.seq + 1, body: late.events[0]!.body }] })).toBe(
      false,
    );
    expect(await seqs(change.task.id)).toEqual([1, 2]);
  });

  it('keeps rows of other modules only with their change', async () => {
    const change = inserted();
    await writer.commitInBatch(change);
    const rows = [{ statement: note, row: { task_id: change.task.id } }];
    const outcomes = await Promise.all([
      writer.commitInBatch({ ...moved(change.task), rows }),
      writer.commitInBatch({ ...moved(change.task), rows }),
    ]);
    expect(outcomes.sort()).toEqual([false, true]);
    expect((await pool.query('select task_id from notes')).rows).toEqual([{ task_id: change.task.id }]);
  });

  it('gives a key to one of many racers, and again after its task failed', async () => {
    const key = { key: 'k', payloadHash: 'h' };
    const racers = Array.from({ length: 16 }, () => inserted(opened(), { key }));
    const outcomes = await Promise.all(racers.map((change) => writer.commitInBatch(change)));
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    const winner = racers[outcomes.indexOf(true)]!;
    const { rows } = await pool.query('select task_id from a2a_idempotency_keys');
    expect(rows).toEqual([{ task_id: winner.task.id }]);
    expect(await writer.commitInBatch(inserted(opened(), { key }))).toBe(false);
    await pool.query(`update a2a_tasks set status_state = 'failed' where id = $1`, [winner.task.id]);
    expect(await writer.commitInBatch(inserted(opened(), { key }))).toBe(true);
  });

  it('a change that the database refuses does not affect the others', async () => {
    const good = Array.from({ length: 5 }, () => inserted());
    const twice = inserted(opened());
    await writer.commitInBatch(twice);
    const outcomes = await Promise.allSettled([...good, twice].map((change) => writer.commitInBatch(change)));
    expect(outcomes.map(({ status }) => status)).toEqual([...good.map(() => 'fulfilled'), 'rejected']);
    expect(await seqs(good[0]!.task.id)).toEqual([1]);
  });

  describe('leases', () => {
    const log = createLogger('silent');
    let here: Presence;
    let there: Presence;
    let leases: TaskLeases;
    let others: TaskLeases;

    beforeAll(async () => {
      [here, there] = [new Presence(database.url, log), new Presence(database.url, log)];
      await Promise.all([here.open(), there.open()]);
      leases = new TaskLeases(new Pg(pool), here, store);
      others = new TaskLeases(new Pg(pool), there, store);
    });

    afterAll(() => Promise.all([here.close(), there.close()]));

    const due = async (): Promise<TaskId> => {
      const change = inserted();
      await writer.commitInBatch(change);
      return change.task.id;
    };

    it('ten claimers, one owner; its epoch is the next', async () => {
      const id = await due();
      const claims = await Promise.all(
        Array.from({ length: 10 }, (_, index) => (index % 2 ? leases : others).claim(id)),
      );
      const won = claims.filter((claim) => claim !== undefined);
      expect(won).toHaveLength(1);
      expect(won[0]).toMatchObject({ task: { id, epoch: 1 }, crashes: 0 });
      expect((await leases.findDue(1_000)).map((task) => task.id)).not.toContain(id);
    });

    it('concurrent claimers of many tasks each get their own', async () => {
      const ids = await Promise.all(Array.from({ length: 20 }, due));
      const claims = await Promise.all(ids.flatMap((id) => [leases.claim(id), others.claim(id)]));
      expect(claims.flatMap((claim) => (claim ? [claim.task.id] : [])).sort()).toEqual(ids.sort());
    });

    it('a claim stays on the page of its row, so that no index is changed', async () => {
      const ids = await Promise.all(Array.from({ length: 60 }, due));
      const pages = async (): Promise<unknown> =>
        (await pool.query('select (ctid::text::point)[0] as page from a2a_tasks where id = any($1) order by id', [ids]))
          .rows;
      const before = await pages();
      await Promise.all(ids.map((id) => leases.claim(id)));
      expect(await pages()).toEqual(before);
    });

    it('is taken over at once from a process that is gone, and the takeover is counted', async () => {
      const id = await due();
      const dying = new Presence(database.url, log);
      await dying.open();
      await new TaskLeases(new Pg(pool), dying, store).claim(id);
      expect(await leases.claim(id)).toBeUndefined();
      await dying.close();
      await eventually(
        () => leases.findDue(1_000),
        (due) => due.some((task) => task.id === id && task.isOrphan),
      );
      const claimed = await eventually(
        () => leases.claim(id),
        (claim) => claim !== undefined,
      );
      expect(claimed).toMatchObject({ task: { epoch: 2 }, crashes: 1 });
    });

    it('is taken over from a live process after it has expired, and not before', async () => {
      const id = await due();
      await others.claim(id);
      expect(await leases.claim(id)).toBeUndefined();
      await pool.query(`update a2a_tasks set lease_until = now() - interval '1 ms' where id = $1`, [id]);
      expect(await leases.claim(id)).toMatchObject({ crashes: 1 });
      expect(await others.renew([id])).toEqual(new Set());
      expect(await leases.renew([id])).toEqual(new Set([id]));
    });

    it('is not lost to another process while the presence connection of its holder is broken', async () => {
      const id = await due();
      const cut = new TaskLeases(new Pg(pool), new Presence(database.url, log), store);
      await cut.claim(id);
      expect(await cut.claim(id)).toBeUndefined();
      expect((await cut.findDue(1_000)).map((task) => task.id)).not.toContain(id);
      expect(await cut.isWaiting(id)).toBe(false);
      await pool.query(`update a2a_tasks set lease_until = now() - interval '1 ms' where id = $1`, [id]);
      expect(await cut.claim(id, undefined, true)).toBeUndefined();
      expect(await cut.claim(id)).toMatchObject({ crashes: 0, isTakenOver: false });
      expect(await leases.claim(id, undefined, true)).toMatchObject({ crashes: 1, isTakenOver: true });
    });

    it('a released task is due at once, and does not count as a crash', async () => {
      const id = await due();
      const claimed = (await others.claim(id))!;
      await others.release(claimed.task);
      expect(await leases.findDue(1_000)).toContainEqual({ id, isOrphan: false });
      expect(await leases.claim(id)).toMatchObject({ crashes: 0 });
    });

    it('the producer of due tasks waits for processes that made them due, and not for lost processes', async () => {
      const [fresh, old, orphan] = [await due(), await due(), await due()];
      await pool.query(`update a2a_tasks set next_at = now() - interval '1 minute' where id = $1`, [old]);
      await leases.claim(orphan);
      await pool.query(`update a2a_tasks set lease_until = now() - interval '1 ms' where id = $1`, [orphan]);
      const found = (await others.findDue(1_000, undefined, 30_000)).map(({ id }) => id);
      expect(found).toEqual(expect.arrayContaining([old, orphan]));
      expect(found).not.toContain(fresh);
    });

    it('identifies a process by its lock alone', async () => {
      const gone = async (owner: number) =>
        (await pool.query<{ gone: boolean }>(`select ${isGone('$1::integer')} as gone`, [owner])).rows[0]!.gone;
      expect(await gone(here.id)).toBe(false);
      expect(await gone(here.id ^ 1)).toBe(true);
    });
  });
});
