import pg from 'pg';
import type { OrgId } from '../../src/kernel/ids.js';
import { Pg } from '../../src/platform/database/pg.js';
import type { Tx } from '../../src/platform/database/tx.js';
import type { Presence } from '../../src/platform/database/presence.js';
import { DeliveryLogStore } from '../../src/webhooks/admin/delivery-log.store.js';
import { DeliverySink } from '../../src/webhooks/delivery/delivery.sink.js';
import { ConfigLogStore } from '../../src/webhooks/admin/config-log.store.js';
import { DeliveryOutcomeStore } from '../../src/webhooks/delivery/delivery-outcome.store.js';
import { DeliveryStore, type Claimed } from '../../src/webhooks/delivery/delivery.store.js';
import { DeliveryWatchStore } from '../../src/webhooks/delivery/delivery-watch.store.js';
import { createTestDatabase, type TestDatabase } from '../support/gateway/database.js';

const none = '0190aaaa-0000-7000-8000-000000000000';

/**
 * Checks that the cost of webhook statements does not grow with their tables, especially for tasks without webhooks.
 */
describe('plans of webhook statements', () => {
  let database: TestDatabase;
  let pool: pg.Pool;

  beforeAll(async () => {
    database = await createTestDatabase('webhook_plans');
    pool = new pg.Pool({ connectionString: database.url, max: 1 });
    await pool.query('set plan_cache_mode = force_generic_plan');
  });
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  const explained = async (text: string, values: unknown[]): Promise<string> => {
    const { rows } = await pool.query<Record<string, string>>({
      text: `explain (analyze, costs off) ${text}`,
      values,
    });
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  };
  /** Returns the plans of the statements that a store runs. */
  const plansWith = async (run: (spy: Pg) => Promise<unknown>): Promise<string> => {
    const plans: Promise<string>[] = [];
    const query = ({ text, values }: { text: string; values: unknown[] }) => {
      plans.push(explained(text, values));
      return Promise.resolve({ rows: [] });
    };
    await run(new Pg({ query } as unknown as pg.Pool));
    return (await Promise.all(plans)).join('\n');
  };
  const plansOf = (run: (store: DeliveryStore, outcomes: DeliveryOutcomeStore) => Promise<unknown>): Promise<string> =>
    plansWith((spy) => run(new DeliveryStore(spy, { id: 1 } as Presence), new DeliveryOutcomeStore(spy)));

  it('an event of a task without configurations is one index lookup, in a new table and in a full one', async () => {
    const events = `(
      select r.task_id, r.task_id as org_id, 2 as seq from json_to_recordset($1::json) as r(task_id uuid))`;
    const sql = new DeliverySink().sql(events);
    const probe = () => explained(sql, [JSON.stringify([{ task_id: none }])]);
    expect(await probe()).toMatch(/(Index|Bitmap)[^\n]*pk_push_configs/);
    await pool.query(
      `insert into push_configs (task_id, id, org_id, url, format)
       select gen_random_uuid(), 'a', gen_random_uuid(), 'http://x', 'v1' from generate_series(1, 20000)`,
    );
    for (const sure of ['select', 'analyze push_configs']) {
      await pool.query(sure);
      const plan = await probe();
      expect(plan).toMatch(/(Index|Bitmap)[^\n]*pk_push_configs/);
      expect(plan).not.toMatch(/Seq Scan/);
      // The deliveries of a missing configuration are never read.
      expect(plan).toMatch(/webhook_deliveries[^\n]*\(never executed\)/);
    }
  });

  it('the first of many deliveries is found and claimed by its index, after any number of ended ones', async () => {
    await pool.query(
      `insert into webhook_deliveries (id, org_id, task_id, config_id, seq, status)
       select gen_random_uuid(), $1, $1, 'a', n, case when n > 19990 then 'pending' else 'delivered' end
       from generate_series(1, 20000) n`,
      [none],
    );
    await pool.query('analyze webhook_deliveries');
    const claim = await plansOf((store) => store.claim({ taskId: none, configId: 'a' }));
    expect(claim).toMatch(/ix_webhook_deliveries_(pending|due)/);
    expect(claim).not.toMatch(/Seq Scan on (webhook|push)/);
    const due = await plansOf((store) => store.findDue(200));
    expect(due).toMatch(/ix_webhook_deliveries_(due|pending)/);
    expect(due).not.toMatch(/Seq Scan on webhook_deliveries/);
    const waiting = [`${none} user:a`];
    for (const others of [
      await plansOf((store) => store.claim({ taskId: none, configId: 'a' }, waiting)),
      await plansOf((store) => store.findDue(200, waiting)),
    ]) {
      expect(others).toMatch(/Index Scan using pk_a2a_tasks/);
      expect(others).not.toMatch(/Seq Scan/);
    }
  });

  it('a check of the order of deliveries, and of waiting ones, reads along indexes', async () => {
    const checkPlan = await plansWith((spy) => new DeliveryWatchStore(spy).overtaken(600));
    expect(checkPlan).toMatch(/ix_webhook_deliveries_created/);
    expect(checkPlan).not.toMatch(/Seq Scan on webhook/);
    const waiting = await plansOf((store) => store.countWaiting().catch(() => undefined));
    expect(waiting).toMatch(/ix_webhook_deliveries_(due|pending)/);
    expect(waiting).not.toMatch(/Seq Scan on webhook/);
  });

  it('the end of an attempt, and a deferral, touch only the deliveries of their own configuration', async () => {
    const claimed = { delivery: none, attempts: 1, lease: '2026-01-01T00:00:00Z' } as Claimed;
    const tried = { durationMs: 1, status: 503, error: 'status_503' };
    for (const end of [
      (_: DeliveryStore, outcomes: DeliveryOutcomeStore) =>
        outcomes.failed(claimed, tried, { kind: 'retry', inMs: 5 }, []),
      (_: DeliveryStore, outcomes: DeliveryOutcomeStore) =>
        outcomes.failed(claimed, tried, { kind: 'closed', reason: 'failing' }, []),
      (_: DeliveryStore, outcomes: DeliveryOutcomeStore) => outcomes.recovered(claimed, tried, []),
      (store: DeliveryStore) => store.defer(claimed, 5),
      (_: DeliveryStore, outcomes: DeliveryOutcomeStore) => outcomes.close(claimed, 'dead', 'deactivated'),
      (store: DeliveryStore) => store.makeDueNow({ taskId: none, configId: 'a' }, '2026-01-01T00:00:00Z'),
    ])
      expect(await plansOf(end)).not.toMatch(/Seq Scan on (webhook|push)/);
  });

  it('claimed, stored and ended deliveries are found by their key in a backlog without statistics', async () => {
    await pool.query(
      `insert into webhook_deliveries (id, org_id, task_id, config_id, seq, status, next_at)
       select gen_random_uuid(), $1, gen_random_uuid(), 'b', 1, 'pending', now() - interval '1 minute'
       from generate_series(1, 5000)`,
      [none],
    );
    const { rows } = await pool.query<{ id: string; task_id: string }>(
      `select id, task_id from webhook_deliveries where config_id = 'b' limit 50`,
    );
    const claimed = rows.map(
      ({ id, task_id }) =>
        ({ delivery: id, taskId: task_id, configId: 'b', attempts: 0, lease: '2026-01-01T00:00:00Z' }) as Claimed,
    );
    const all = <Each>(each: readonly Each[], run: (one: Each) => Promise<unknown>) =>
      Promise.allSettled(each.map(run));
    for (const run of [
      (store: DeliveryStore) => all(rows, ({ task_id: taskId }) => store.claim({ taskId, configId: 'b' })),
      (store: DeliveryStore) => all(claimed, (one) => store.keepBody(one, '{}')),
      (store: DeliveryStore) => all(claimed, (one) => store.defer(one, 5)),
      (store: DeliveryStore) => all(claimed, (one) => store.delivered(one, { durationMs: 1, status: 200 }, true)),
      (_: DeliveryStore, outcomes: DeliveryOutcomeStore) =>
        outcomes.failed(claimed[0]!, { durationMs: 1 }, { kind: 'retry', inMs: 5 }, []),
      (_: DeliveryStore, outcomes: DeliveryOutcomeStore) => outcomes.close(claimed[0]!, 'dead', 'deactivated'),
    ]) {
      const plan = await plansOf(run);
      expect(plan).toMatch(/Index Scan using (pk|uq)_webhook_deliveries/);
      expect(
        Math.max(...[...plan.matchAll(/Rows Removed by (?:Join )?Filter: (\d+)/g)].map(([, lost]) => Number(lost)), 0),
      ).toBeLessThan(100);
    }
    await pool.query(`delete from webhook_deliveries where config_id = 'b'`);
  });

  it('a list of the configurations of an org reads at most a page, newest first', async () => {
    await pool.query('analyze push_configs');
    const page = await plansWith((spy) => new ConfigLogStore(spy).findPage(none as OrgId, {}, 20));
    expect(page).toMatch(/Index Scan Backward using ix_push_configs_org/);
    const own = await plansWith((spy) => new ConfigLogStore(spy).findPage(none as OrgId, { owner: 'user:a' }, 20));
    expect(own).toMatch(/ix_push_configs_org/);
    expect(own).toMatch(/Index[^\n]*pk_a2a_tasks|never executed/);
    expect(own).not.toMatch(/Seq Scan on push_configs/);
  });

  it('lists read at most a page: of all deliveries, and of the few dead ones among any number', async () => {
    await pool.query(`update webhook_deliveries set status = 'dead' where seq between 5 and 8`);
    await pool.query('analyze webhook_deliveries');
    const page = (state?: 'dead') =>
      plansWith((spy) => new DeliveryLogStore(spy).findPage(none as OrgId, { state }, 20));
    expect(await page()).toMatch(/Index Scan Backward using ix_webhook_deliveries_org/);
    const own = await plansWith((spy) => new DeliveryLogStore(spy).findPage(none as OrgId, { owner: 'user:a' }, 20));
    expect(own).toMatch(/Index Scan Backward using ix_webhook_deliveries_org/);
    expect(own).toMatch(/Index[^\n]*pk_a2a_tasks/);
    expect(own).not.toMatch(/Seq Scan/);
    const dead = await page('dead');
    expect(dead).toMatch(/using ix_webhook_deliveries_open/);
    expect(
      Math.max(...[...dead.matchAll(/Rows Removed by Filter: (\d+)/g)].map(([, rows]) => Number(rows)), 0),
    ).toBeLessThan(20);
  });

  it('a page of a replay reads at most a page, although the planner underestimates the delivered ones', async () => {
    const org = '0190aaaa-0000-7000-8000-000000000001';
    const make = (status: string, count: number) =>
      pool.query(
        `with made as (
           insert into webhook_deliveries (id, org_id, task_id, config_id, seq, status)
           select gen_random_uuid(), $1, gen_random_uuid(), 'c', 1, $3
           from generate_series(1, $2)
           returning task_id, org_id)
         insert into push_configs (task_id, id, org_id, url, format)
         select task_id, 'c', org_id, 'http://x', 'v1' from made`,
        [org, count, status],
      );
    await pool.query('delete from webhook_deliveries');
    await make('pending', 100);
    await pool.query('analyze webhook_deliveries');
    await make('delivered', 5_000);
    let plan = '';
    const query = async (text: string, values?: unknown[]): Promise<object[]> => {
      if (!values) await pool.query(text);
      else plan = await explained(text, values);
      return [];
    };
    await pool.query('begin');
    await pool.query('set local plan_cache_mode = auto'); // the statement is not prepared
    await new DeliveryLogStore({} as Pg).replay(
      { manager: { query } } as unknown as Tx,
      org as OrgId,
      { state: 'delivered' },
      1_000,
    );
    await pool.query('rollback');
    expect(plan).toMatch(/Index Scan using ix_webhook_deliveries_org on webhook_deliveries d[^\n]*rows=1000/);
  });
});
