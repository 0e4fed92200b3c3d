import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import pg from 'pg';
import { TaskLeases } from '../../../src/tasks/storage/task-lease.store.js';
import { TaskWatchSweeper } from '../../../src/tasks/run/task-watch.sweeper.js';
import { TaskWriter } from '../../../src/tasks/storage/task-writer.js';
import { TaskStore } from '../../../src/tasks/storage/task.store.js';
import { DeliveryWatchSweeper } from '../../../src/webhooks/delivery/delivery-watch.sweeper.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { Board } from '../../support/gateway/board.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { freePort } from '../../support/gateway/services.js';
import { hurry, startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('the metrics', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;

  beforeAll(async () => {
    gateway = await startTestGateway({ METRICS_PORT: String(await freePort()) });
    sink = await startWebhookSink();
    await publish(gateway);
    await publish(gateway, { name: 'asleep', executor: { kind: 'echo', delayMs: 600_000 } });
  });
  afterAll(async () => {
    await sink.close();
    await gateway.close();
  });

  /** Returns the value of a series, `name{label="value"}`, in a scrape; undefined when it is absent. */
  const value = async (series: string): Promise<number | undefined> => {
    const text = await (await fetch(`http://127.0.0.1:${gateway.gateway.metricsPort}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${series} `));
    return line === undefined ? undefined : Number(line.slice(series.length + 1));
  };
  const becomes = (series: string, satisfies: (now: number) => boolean) =>
    eventually(
      () => value(series),
      (now) => now !== undefined && satisfies(now),
    );
  const send = async (agent: string, url?: string): Promise<string> => {
    const push = url === undefined ? {} : { taskPushNotificationConfig: { url } };
    const configuration = { returnImmediately: true, ...push };
    return (await rpc(gateway, 'SendMessage', { message: userMessage('x'), configuration }, { agent })).task.id;
  };
  const working = (id: string) =>
    eventually(
      () =>
        gateway.sql(`select from a2a_tasks where id = $1 and status_state = 'working' and lease_owner is not null`, [
          id,
        ]),
      ({ length }) => length === 1,
    );

  it('show how long work has been due without a worker, and nothing after a worker took it', async () => {
    await becomes('rialto_due_lag_seconds{kind="tasks"}', (lag) => lag === 0);
    const board = new Board(gateway);
    for (const queue of ['task-execution', 'webhook-delivery']) await board.turn(queue, 'pause');
    await send('echo');
    await rpc(gateway, 'SendMessage', {
      message: userMessage('x'),
      configuration: { taskPushNotificationConfig: { url: sink.url } },
    });
    await becomes('rialto_due_lag_seconds{kind="tasks"}', (lag) => lag > 1);
    await becomes('rialto_due{kind="tasks"}', (count) => count === 1);
    await becomes('rialto_due_lag_seconds{kind="deliveries"}', (lag) => lag > 1);
    for (const queue of ['task-execution', 'webhook-delivery']) await board.turn(queue, 'resume');
    await becomes('rialto_due{kind="tasks"}', (count) => count === 0);
    await becomes('rialto_due_lag_seconds{kind="deliveries"}', (lag) => lag === 0);
  });

  it('show how long the audit has waited for its seal, for any cause', async () => {
    await becomes('rialto_due_lag_seconds{kind="audit"}', (lag) => lag === 0);
    const sealer = new pg.Client({ connectionString: gateway.database.url });
    await sealer.connect();
    await sealer.query(`select pg_advisory_lock(hashtextextended('audit:' || id::text, 0)) from orgs`);
    await send('echo');
    await becomes('rialto_due_lag_seconds{kind="audit"}', (lag) => lag > 1);
    await becomes('rialto_due{kind="audit"}', (count) => count > 0);
    await sealer.end();
    await becomes('rialto_due_lag_seconds{kind="audit"}', (lag) => lag === 0);
    await becomes('rialto_due{kind="audit"}', (count) => count === 0);
  });

  it('count deliveries by outcome, and the age of their events', async () => {
    const before = (await value('rialto_webhook_age_seconds_count')) ?? 0;
    const delivered = (await value('rialto_webhook_attempts_total{outcome="delivered"}')) ?? 0;
    sink.script([503, 410]);
    const id = await send('echo', sink.url);
    await becomes('rialto_webhook_attempts_total{outcome="retry"}', (count) => count === 1);
    await hurry(gateway, id);
    await becomes('rialto_webhook_attempts_total{outcome="closed"}', (count) => count === 1);
    await send('echo', sink.url);
    await becomes('rialto_webhook_attempts_total{outcome="delivered"}', (count) => count === delivered + 3);
    await becomes('rialto_webhook_age_seconds_count', (count) => count === before + 3);
  });

  it('count requests with an unknown outcome, and none that were never sent', async () => {
    const tarpit = createServer((socket) => socket.once('data', () => socket.destroy())).listen(0, '127.0.0.1');
    await once(tarpit, 'listening');
    const { port } = tarpit.address() as AddressInfo;
    await send('echo', `http://127.0.0.1:${port}/`);
    await becomes('rialto_ambiguous_sends_total{to="webhook"}', (count) => count === 1);
    tarpit.close();
    await publish(gateway, { name: 'gone', executor: { kind: 'http', url: `http://127.0.0.1:${port}/` } });
    const called = await send('gone');
    await eventually(
      () => gateway.log.filter((line) => line.includes(`${called}-1`)),
      ({ length }) => length > 0,
    );
    expect(await value('rialto_ambiguous_sends_total{to="service"}')).toBeUndefined();
  });

  it('count work that was taken over from a lost process, and writes of the process that lost it', async () => {
    const id = await send('asleep');
    await working(id);
    const stale = (await gateway.gateway.get(TaskStore).find(id))!;
    // Its holder froze: the lease expired, and another process takes over.
    await gateway.sql(`update a2a_tasks set lease_owner = 1, lease_until = now() - interval '1 second' where id = $1`, [
      id,
    ]);
    await becomes('rialto_lease_takeovers_total{kind="tasks"}', (count) => count === 1);
    const before = (await value('rialto_fenced_writes_total{kind="tasks"}')) ?? 0;
    const late = { task: stale, from: stale, events: [], hold: {} };
    expect(await gateway.gateway.get(TaskWriter).commitInBatch(late)).toBe(false);
    expect(await value('rialto_fenced_writes_total{kind="tasks"}')).toBe(before + 1);
    await rpc(gateway, 'CancelTask', { id }, { agent: 'asleep' });
  });

  it('AN-78, AN-79 count the results of sweeps: resumed, finally failed, held, lost notices', async () => {
    const series = (outcome: string) => `rialto_swept_total{kind="tasks",outcome="${outcome}"}`;
    const outcomes = ['selected', 'dispatched', 'markedFailed', 'skipped', 'dispatchFailed'];
    expect(await Promise.all(outcomes.map((outcome) => value(series(outcome))))).not.toContain(undefined);
    const counts = async () => Promise.all(outcomes.map(async (outcome) => (await value(series(outcome)))!));
    const orphan = (id: string, crashes: number) =>
      gateway.sql(
        `update a2a_tasks set crashes = $2, lease_owner = 1, lease_until = now() - interval '1 second' where id = $1`,
        [id, crashes],
      );
    const [once, thrice] = await Promise.all([send('asleep'), send('asleep')]);
    for (const id of [once, thrice]) await working(id);
    const [selected, dispatched, markedFailed] = await counts();
    await orphan(once, 0);
    await orphan(thrice, 2);
    await becomes(series('markedFailed'), (count) => count === markedFailed! + 1);
    await becomes(series('dispatched'), (count) => count > dispatched!);
    await becomes(series('selected'), (count) => count >= selected! + 2);
    const { status } = await rpc(gateway, 'GetTask', { id: thrice }, { agent: 'asleep' });
    expect(status.message.parts[0].text).toMatch(/^exceeded 3 attempts/);
    await working(once);
    await rpc(gateway, 'CancelTask', { id: once }, { agent: 'asleep' });
  });

  describe('of invariants', () => {
    const violations = (inv: string) => value(`rialto_invariant_violation_total{inv="${inv}"}`);
    /** Runs several checks: each takes a sample from a time in the last ten minutes. */
    const check = async () => {
      const random = jest.spyOn(Math, 'random').mockReturnValue(0.999);
      await gateway.gateway.get(TaskWatchSweeper).sweep();
      await gateway.gateway.get(DeliveryWatchSweeper).sweep();
      random.mockRestore();
    };
    const all = async () => Promise.all(['I1', 'I2', 'I3', 'I6'].map(violations));

    it('are 0 while all hold', async () => {
      await Promise.all(Array.from({ length: 20 }, (_, index) => send('echo', index % 2 ? sink.url : undefined)));
      await eventually(
        () => gateway.sql(`select from webhook_deliveries where status = 'pending' and next_at = created_at`),
        ({ length }) => length === 0,
      );
      await check();
      expect(await all()).toEqual([0, 0, 0, 0]);
    });

    it('count a second end, which the database refuses', async () => {
      const id = await send('asleep');
      await working(id);
      await gateway.gateway.get(TaskLeases).renew([]);
      const task = (await gateway.gateway.get(TaskStore).find(id))!;
      await gateway.sql(
        `insert into a2a_task_events (task_id, seq, body, terminal, at) values ($1, 99, '{}', true, now())`,
        [id],
      );
      const body = { statusUpdate: { taskId: id, contextId: task.contextId, status: { state: task.state } } };
      const ended = { ...task, state: 'TASK_STATE_FAILED', seq: task.seq + 1 } as const;
      const commit = gateway.gateway
        .get(TaskWriter)
        .commitInBatch({ task: ended, from: task, events: [{ seq: ended.seq, body }] as never, hold: {} });
      await expect(commit).rejects.toThrow(/uq_a2a_task_events_end/);
      expect(await violations('I2')).toBe(1);
      await gateway.sql('delete from a2a_task_events where task_id = $1 and seq = 99', [id]).catch(() => undefined);
      await rpc(gateway, 'CancelTask', { id }, { agent: 'asleep' }).catch(() => undefined);
    });

    it('count broken rows once each, however often they are found', async () => {
      const before = await all();
      const ids = await Promise.all([send('asleep'), send('asleep'), send('echo', sink.url)]);
      for (const id of ids.slice(0, 2)) await working(id);
      await gateway.sql('update a2a_tasks set seq = seq + 5 where id = $1', [ids[0]]);
      await gateway.sql('update a2a_tasks set next_at = null where id = $1', [ids[1]]);
      await eventually(
        () => gateway.sql(`select from webhook_deliveries where task_id = $1 and status = 'delivered'`, [ids[2]]),
        ({ length }) => length >= 2,
      );
      await gateway.sql(
        `update webhook_deliveries set ended_at = now() + interval '1 hour' where task_id = $1
           and seq = (select min(seq) from webhook_deliveries where task_id = $1)`,
        [ids[2]],
      );
      await check();
      await check();
      const [i1, i2, i3, i6] = before as [number, number, number, number];
      expect(await all()).toEqual([i1 + 1, i2, i3 + 1, i6 + 1]);
    });
  });
});
