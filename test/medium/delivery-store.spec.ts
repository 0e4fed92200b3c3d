import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { Pg } from '../../src/platform/database/pg.js';
import type { Presence } from '../../src/platform/database/presence.js';
import { DeliveryStore, type Claimed } from '../../src/webhooks/delivery/delivery.store.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

describe('deliveries of a configuration, in order', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let statements: string[];
  let taskId: string;
  let key: { taskId: string; configId: string };
  const tried = { durationMs: 1, status: 200 };

  beforeAll(async () => {
    database = await createTestDatabase('delivery_store');
    pool = new pg.Pool({ connectionString: database.url });
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });
  beforeEach(async () => {
    statements = [];
    taskId = randomUUID();
    key = { taskId, configId: 'a' };
    await pool.query(
      `insert into push_configs (task_id, id, org_id, url, format) values ($1, 'a', $1, 'http://x', 'v1')`,
      [taskId],
    );
  });

  const storeOf = (id: number): DeliveryStore => {
    const query = ({ name, text, values }: { name: string; text: string; values: unknown[] }) => {
      statements.push(name);
      return pool.query(text, values);
    };
    return new DeliveryStore(new Pg({ query } as unknown as pg.Pool), { id } as Presence);
  };
  /**
   * Inserts pending deliveries.
   * @param seqs numbers of their events.
   */
  const pending = (...seqs: number[]) =>
    pool.query(
      `insert into webhook_deliveries (id, org_id, task_id, config_id, seq, status, next_at)
       select gen_random_uuid(), $1, $1, 'a', n, 'pending', now() from unnest($2::integer[]) n`,
      [taskId, seqs],
    );
  const rowsNow = async () => {
    const { rows } = await pool.query(
      'select seq, status, lease_owner, attempts from webhook_deliveries where task_id = $1 order by seq',
      [taskId],
    );
    return rows;
  };

  it('the end of a delivery claims the next one in the same statement', async () => {
    const store = storeOf(1);
    await pending(1, 2, 3);
    const seen: number[] = [];
    for (let one = await store.claim(key); one; one = await store.delivered(one, tried, true)) {
      seen.push(one.seq);
      expect(one).toMatchObject({ attempts: 1, isTakenOver: false, state: 'active', url: 'http://x' });
    }
    expect(seen).toEqual([1, 2, 3]);
    expect(statements).toEqual(['delivery-claim', ...Array.from({ length: 3 }, () => 'delivery-done')]);
    expect(await rowsNow()).toEqual(
      [1, 2, 3].map((seq) => ({ seq, status: 'delivered', lease_owner: null, attempts: 1 })),
    );
  });

  it('the end of a delivery leaves the next one unclaimed when no more work is wanted', async () => {
    const store = storeOf(1);
    await pending(1, 2);
    expect(await store.delivered((await store.claim(key))!, tried)).toBeUndefined();
    expect(await rowsNow()).toMatchObject([
      { status: 'delivered' },
      { status: 'pending', lease_owner: null, attempts: 0 },
    ]);
  });

  it('an older delivery that is pending again goes before later ones', async () => {
    const store = storeOf(1);
    await pending(2, 3);
    const second = (await store.claim(key))!;
    await pending(1);
    expect(await store.delivered(second, tried, true)).toMatchObject({ seq: 1 });
  });

  it('a delivery that is not due, or is leased by a live process, is not claimed', async () => {
    const store = storeOf(1);
    await pending(1, 2);
    const first = (await store.claim(key))!;
    await pool.query(
      `update webhook_deliveries set next_at = now() + interval '1 hour' where task_id = $1 and seq = 2`,
      [taskId],
    );
    expect(await store.delivered(first, tried, true)).toBeUndefined();
    expect(await rowsNow()).toMatchObject([{ status: 'delivered' }, { status: 'pending', attempts: 0 }]);
  });

  it('a worker that lost its claim claims nothing: the next delivery belongs to the new holder', async () => {
    const store = storeOf(1);
    await pending(1, 2);
    const lost = (await store.claim(key))!;
    await pool.query(`update webhook_deliveries set attempts = attempts + 1 where id = $1`, [lost.delivery]);
    expect(await store.delivered(lost, tried, true)).toBeUndefined();
    expect(await rowsNow()).toMatchObject([
      { status: 'pending' },
      { status: 'pending', lease_owner: null, attempts: 0 },
    ]);
  });

  it('abuse 36: a delivery of a deferred sender is neither claimed nor found, and stays due', async () => {
    const store = storeOf(1);
    await pool.query(
      `insert into a2a_tasks (id, org_id, agent_id, agent_name, context_id, owner, principal, status_state,
         status_timestamp, history, artifacts, seq, folded_seq)
       values ($1, $1, $1, 'a', 'c', 'user:bad', '{}', 'completed', now(), '[]', '[]', 1, 1)`,
      [taskId],
    );
    await pending(1, 2);
    const found = async (...saturated: string[]) =>
      (await store.findDue(1_000, saturated)).filter((due) => due.taskId === taskId);
    const bad = `${taskId} user:bad`;
    expect(await store.claim(key, [bad])).toBeUndefined();
    expect(await found(bad)).toEqual([]);
    expect(await rowsNow()).toMatchObject([
      { status: 'pending', attempts: 0 },
      { status: 'pending', attempts: 0 },
    ]);
    expect(await found(`${taskId} user:good`)).toEqual([{ ...key, isOrphan: false }]);
    statements = [];
    const first = (await store.claim(key, [`${taskId} user:good`]))!;
    expect(first).toMatchObject({ seq: 1, sender: bad });
    expect(await store.delivered(first, tried, true)).toMatchObject({ seq: 2, sender: bad });
    expect(statements).toEqual(['delivery-claim', 'delivery-done']);
  });

  it('many configurations are ended and continued in one statement, each with its own delivery', async () => {
    const store = storeOf(1);
    const others = Array.from({ length: 20 }, () => randomUUID());
    await pool.query(
      `insert into push_configs (task_id, id, org_id, url, format)
       select t, 'a', t, 'http://x/' || t, 'v1' from unnest($1::uuid[]) t`,
      [others],
    );
    await pool.query(
      `insert into webhook_deliveries (id, org_id, task_id, config_id, seq, status, next_at)
       select gen_random_uuid(), t, t, 'a', n, 'pending', now() from unnest($1::uuid[]) t, generate_series(1, 2) n`,
      [others],
    );
    const each = (run: (taskId: string) => Promise<Claimed | undefined>) => Promise.all(others.map(run));
    const first = await each((one) => store.claim({ taskId: one, configId: 'a' }));
    const second = await Promise.all(first.map((one) => store.delivered(one!, tried, true)));
    expect(second.map((one) => [one!.taskId, one!.seq, one!.url])).toEqual(
      others.map((one) => [one, 2, `http://x/${one}`]),
    );
    expect(statements.filter((name) => name === 'delivery-done').length).toBeLessThan(20);
  });
});
