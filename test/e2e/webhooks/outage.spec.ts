import { systemClock } from '../../../src/kernel/clock.js';
import { WebhookSweeper } from '../../../src/webhooks/delivery/webhook.sweeper.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const hour = 3_600;
/** Seconds from each failed attempt to the next. */
const slots = [5, 300, 1_800, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour];
const untilNext = (heads: readonly { wait: number }[]): number => Math.min(...heads.map(({ wait }) => wait));
/** Seconds that a breaker stays open: between two attempts no delivery is deferred for longer. */
const longestOpen = 61;

describe('a receiver that is down for 75 hours', () => {
  let gateway: TestGateway;
  let [down, fine]: WebhookSink[] = [];
  /** Simulated seconds that have passed. */
  let virtual = 0;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    [down, fine] = await Promise.all([startWebhookSink(), startWebhookSink()]);
    const elapsed = systemClock.elapsed.bind(systemClock);
    jest.spyOn(systemClock, 'elapsed').mockImplementation(() => elapsed() + virtual * 1_000);
    jest.spyOn(Math, 'random').mockReturnValue(0.5);
  });
  afterAll(async () => {
    jest.restoreAllMocks();
    await gateway.close();
    await Promise.all([down!.close(), fine!.close()]);
  });

  /** Creates a task with three last events that both receivers must get. */
  const send = async (): Promise<string> => {
    const asks = { agent: 'asks' };
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('hi') }, asks);
    for (const [id, { url }] of Object.entries({ down: down!, fine: fine! }))
      await rpc(gateway, 'CreateTaskPushNotificationConfig', { taskId: task.id, id, url }, asks);
    await rpc(gateway, 'SendMessage', { message: userMessage('red', { taskId: task.id }) }, asks);
    return task.id;
  };
  const pending = () =>
    gateway.sql(
      `select distinct on (task_id, config_id) id, task_id, config_id, attempts,
         extract(epoch from next_at - now())::float as wait,
         extract(epoch from next_at - (select max(at) from webhook_attempts where delivery_id = id))::float as pause
       from webhook_deliveries
       where status = 'pending'
       order by task_id, config_id, seq`,
    );
  const settled = () =>
    eventually(
      () =>
        gateway.sql(
          `select from webhook_deliveries where status = 'pending' and (next_at <= now() or lease_until is not null)`,
        ),
      ({ length }) => length === 0,
    );
  const sweep = () => gateway.gateway.get(WebhookSweeper).sweep();
  /** Advances the time until a delivery is due, and attempts it. */
  const pass = async (heads: readonly { wait: number }[]): Promise<void> => {
    const seconds = untilNext(heads) + 0.01;
    virtual += seconds;
    const back = `- make_interval(secs => $1)`;
    await gateway.sql(`update push_configs set failing_since = failing_since ${back} where failing_since is not null`, [
      seconds,
    ]);
    await gateway.sql(`update webhook_deliveries set next_at = next_at ${back} where status = 'pending'`, [seconds]);
    await sweep();
    await settled();
  };

  it('F33: gets all when it is back, in order, each once; others are not affected, and nothing piles up', async () => {
    down!.script([503], true);
    const taskIds = await Promise.all([send(), send(), send()]);
    await settled();
    const connections = () =>
      gateway.sql(`select count(*)::int from pg_stat_activity where datname = current_database()`);
    const [before] = await connections();

    let heads = await pending();
    for (; virtual + untilNext(heads) < 75 * hour; heads = await pending()) {
      const known = new Map(heads.map((head) => [head.id, head]));
      await pass(heads);
      for (const { id, attempts, wait, pause } of await pending()) {
        const tried = attempts > (known.get(id)?.attempts ?? 0);
        const planned = slots[attempts - 1]!;
        if (!tried) expect(wait).toBeLessThan(Math.max(known.get(id)?.wait ?? 0, longestOpen) + 1);
        else expect(Math.abs(pause - planned)).toBeLessThan(2);
      }
    }
    expect(down!.connections()).toBeLessThanOrEqual(8);
    expect((await connections())[0].count).toBeLessThanOrEqual(before.count + 2);
    expect(heads.map(({ attempts }) => attempts)).toEqual([9, 9, 9]);
    const midway = await send();
    await settled();
    expect(new Set(fine!.received.map(({ body }) => (body.statusUpdate ?? body.artifactUpdate).taskId))).toContain(
      midway,
    );

    const tries = down!.received.length;
    const backAt = virtual;
    down!.script([200], true);
    for (heads = await pending(); heads.length > 0; heads = await pending()) await pass(heads);
    expect(virtual - backAt).toBeLessThan(24 * hour);
    const rows = await gateway.sql(`select status, attempts from webhook_deliveries where config_id = 'down'`);
    expect(rows).toHaveLength(12);
    expect(rows.every(({ status, attempts }) => status === 'delivered' && attempts <= 10)).toBe(true);
    const taken = down!.received.slice(tries);
    expect(taken).toHaveLength(12);
    expect(new Set(taken.map(({ headers }) => headers['webhook-id'])).size).toBe(12);
    for (const taskId of [...taskIds, midway]) {
      const own = taken.filter(({ body }) => (body.statusUpdate ?? body.artifactUpdate).taskId === taskId);
      expect(own.map(({ body }) => body.statusUpdate?.status.state ?? 'artifact')).toEqual([
        'TASK_STATE_WORKING',
        'artifact',
        'TASK_STATE_COMPLETED',
      ]);
    }
    expect(await gateway.sql(`select distinct state from push_configs`)).toEqual([{ state: 'active' }]);
  });
});
