import { publish, rpc, rpcError, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { hurry, startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';
import { readEvents } from '../../support/gateway/event-rows.js';

const stateOf = ({ body }: { body: any }): string | undefined => body.statusUpdate?.status.state;
const deliveries = (gateway: TestGateway, taskId: string) =>
  gateway.sql('select status, attempts, last_error from webhook_deliveries where task_id = $1 order by seq', [taskId]);
const send = async (gateway: TestGateway, agent: string, url: string, text = 'hi'): Promise<string> => {
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { url } };
  return (await rpc(gateway, 'SendMessage', { message: userMessage(text), configuration }, { agent })).task.id;
};
const allOver = (gateway: TestGateway, taskId: string, count: number) =>
  eventually(
    () => deliveries(gateway, taskId),
    (rows) => rows.length >= count && rows.every(({ status }) => status === 'delivered'),
  );

describe('webhooks of processes that start and stop', () => {
  let first: TestGateway;
  let sink: WebhookSink;

  beforeEach(async () => void (sink = await startWebhookSink()));
  afterEach(async () => {
    await first.close();
    await sink.close();
  });

  it('are posted by the next process when one stops in the middle, none twice', async () => {
    first = await startTestGateway();
    await publish(first);
    const stopped = await startTestGateway({}, first);
    sink.script([200, 500], true);
    const taskId = await send(stopped, 'echo', sink.url);
    await eventually(
      () => sink.received,
      (all) => all.length >= 2,
    );
    await stopped.close();
    sink.script([200], true);
    await hurry(first);
    await allOver(first, taskId, 3);
    const ids = sink.received.map(({ headers }) => headers['webhook-id']);
    expect(new Set(ids).size).toBe(3);
    expect([...new Set(ids)]).toEqual(ids.filter((id, index) => ids.indexOf(id) === index));
    expect(sink.received.filter((post) => stateOf(post) === 'TASK_STATE_COMPLETED')).toHaveLength(1);
  });

  it('RY-37: are posted once after a kill -9 before the end was posted', async () => {
    first = await startTestGateway({ RIALTO_ROLE: 'api' });
    await publish(first);
    sink.script(['hang']);
    const killed = first.beside();
    await killed.ready;
    const message = { messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: 'hi' }] };
    const { id: taskId } = await rpc(first, 'message/send', { message, webhook_url: sink.url });
    await eventually(
      () => sink.received,
      (all) => all.length === 1,
    );
    await eventually(
      () => rpc(first, 'GetTask', { id: taskId }),
      ({ status }) => status.state === 'TASK_STATE_COMPLETED',
    );
    killed.child.kill('SIGKILL');
    await killed.ended;
    const next = first.beside();
    try {
      await next.ready;
      const rows = await eventually(
        () => deliveries(first, taskId),
        (all) => all.length === 3 && all.every(({ status }) => status !== 'pending'),
      );
      expect(rows.map(({ status, attempts }) => [status, attempts])).toEqual([
        ['delivered', 2],
        ['skipped', 1],
        ['delivered', 1],
      ]);
      const [one, again] = sink.received;
      expect([again!.text, again!.headers['webhook-id']]).toEqual([one!.text, one!.headers['webhook-id']]);
      expect(sink.received.map(({ body }) => body.status)).toEqual(['running', 'running', 'completed']);
    } finally {
      next.child.kill('SIGTERM');
      await next.ended;
    }
  });

  it('keep their order, one at a time, when several processes deliver', async () => {
    first = await startTestGateway();
    const others = await Promise.all([startTestGateway({}, first), startTestGateway({}, first)]);
    try {
      await publish(first, { name: 'chunks', executor: { kind: 'echo', delayMs: 400, chunks: 40 } });
      sink.delay(15);
      sink.script([200, 503, 200, 200, 200, 503]);
      const taskId = await send(
        others[0],
        'chunks',
        sink.url,
        String.fromCodePoint(...Array.from({ length: 40 }, (_, n) => 65 + n)),
      );
      const hurrying = setInterval(() => void hurry(first), 25);
      await allOver(first, taskId, 42).finally(() => clearInterval(hurrying));
      const [, ...events] = await readEvents(first.sql, taskId);
      const texts = sink.received.map(({ text }) => text);
      expect(texts.filter((text, index) => text !== texts[index - 1]).map((text) => JSON.parse(text))).toEqual(events);
      expect(texts).toHaveLength(events.length + 2);
      expect(sink.mostAtOnce()).toBe(1);
    } finally {
      await Promise.all(others.map((other) => other.close()));
    }
  });

  it('are left to their holder, until it is gone or its lease has expired', async () => {
    first = await startTestGateway();
    await publish(first);
    const other = await startTestGateway({ RIALTO_ROLE: 'api' }, first);
    try {
      const [{ alive }] = await first.sql(
        `select objid::int as alive from pg_locks where locktype = 'advisory' and objsubid = 2 and database = (
           select oid from pg_database where datname = current_database()) limit 1`,
      );
      sink.script([500], true);
      const taskId = await send(first, 'echo', sink.url);
      const waiting = () =>
        eventually(
          () => first.sql(`select lease_until from webhook_deliveries where task_id = $1 order by seq`, [taskId]),
          ([head]) => head?.lease_until === null && sink.received.length > 0,
        );
      const hold = (owner: number, seconds: number) =>
        first.sql(
          `update webhook_deliveries
           set next_at = now(), lease_owner = $2, lease_until = now() + $3 * interval '1 second'
           where id = (select id from webhook_deliveries where task_id = $1 order by seq limit 1)`,
          [taskId, owner, seconds],
        );
      await waiting();
      await hold(alive, 60);
      const before = sink.received.length;
      const [{ later }] = await first.sql(`select now() + interval '2500 milliseconds' as later`);
      await eventually(
        () => first.sql('select now() > $1 as over', [later]),
        ([{ over }]) => over,
      );
      expect(sink.received).toHaveLength(before);
      await hold(alive, -1);
      await eventually(
        () => sink.received.length,
        (count) => count === before + 1,
      );
      await waiting();
      const nobody = 1;
      await hold(nobody, 60);
      await eventually(
        () => sink.received.length,
        (count) => count === before + 2,
      );
    } finally {
      await other.close();
    }
  });
});

describe('webhooks with private addresses forbidden', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_OUTBOUND_ALLOW: '10.99.0.0/16' });
    sink = await startWebhookSink();
    await publish(gateway);
  });
  afterAll(async () => {
    await gateway.close();
    await sink.close();
  });

  it('abuse 20: are refused at configuration, and their message creates no task', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') });
    const port = new URL(sink.url).port;
    for (const url of [
      sink.url,
      `http://localhost:${port}/`,
      `http://[::1]:${port}/`,
      `http://0x7f.1:${port}/`,
      'http://169.254.169.254/latest/meta-data',
      'http://192.168.1.1/',
      'http://user:pass@example.com/',
      'file:///etc/passwd',
      'gopher://example.com/',
      'nonsense',
    ]) {
      const direct = await rpcError(gateway, 'CreateTaskPushNotificationConfig', { taskId: task.id, url });
      expect(direct.code).toBe(-32602);
      const configuration = { taskPushNotificationConfig: { url } };
      const inline = await rpcError(gateway, 'SendMessage', { message: userMessage('x'), configuration });
      expect(inline.code).toBe(-32602);
      // Only the given host is named, never what it resolves to.
      const { hostname = '' } = URL.canParse(url) ? new URL(url) : {};
      const told = JSON.stringify([direct, inline]).replaceAll(`\\"${hostname}\\"`, '');
      expect(told).not.toMatch(/ECONN|127\.0\.0\.1|169\.254/);
    }
    expect(await gateway.sql('select from push_configs')).toEqual([]);
    expect(await gateway.sql('select from a2a_tasks')).toHaveLength(1);
  });

  it('abuse 20 23: are refused again at the post, and no caller learns of the port', async () => {
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') });
    const closed = 'http://127.0.0.1:9/';
    for (const [id, url] of Object.entries({ open: sink.url, closed })) {
      await gateway.sql(
        `insert into push_configs (task_id, id, org_id, url, format)
         select id, $2, org_id, $3, 'v1' from a2a_tasks where id = $1`,
        [task.id, id, url],
      );
      await gateway.sql(
        `insert into webhook_deliveries (id, org_id, task_id, config_id, seq)
         select gen_random_uuid(), org_id, id, $2, 2 from a2a_tasks where id = $1`,
        [task.id, id],
      );
    }
    const tries = await eventually(
      () => gateway.sql('select status, error, reply from webhook_attempts'),
      (rows) => rows.length === 2,
    );
    for (const attempt of tries) expect(attempt).toEqual({ status: null, error: 'url_not_allowed', reply: null });
    expect(sink.received).toEqual([]);
  });
});
