import { createServer as createTlsServer } from 'node:https';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../../src/kernel/clock.js';
import { DeliveryAdmission } from '../../../src/webhooks/admission/delivery-admission.js';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { expiredTls } from '../../support/stubs/expired-tls.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { freePort } from '../../support/gateway/services.js';
import { hurry, startWebhookSink, type Reply, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const eventsOfTask = 3;
const send = async (gateway: TestGateway, url: string, token?: string): Promise<string> => {
  const configuration = { returnImmediately: true, taskPushNotificationConfig: { id: 'hook', url } };
  const agent = token === undefined ? 'echo' : 'own';
  return (await rpc(gateway, 'SendMessage', { message: userMessage('hi'), configuration }, { agent, token })).task.id;
};
const rowsOf = (gateway: TestGateway, taskIds: readonly string[]) =>
  gateway.sql(
    `select task_id, seq, status, attempts, last_error, extract(epoch from next_at - now())::float as wait
     from webhook_deliveries where task_id = any($1::uuid[]) order by task_id, seq`,
    [taskIds],
  );
const allDelivered = (gateway: TestGateway, taskIds: readonly string[], withinMs?: number) =>
  eventually(
    () => rowsOf(gateway, taskIds),
    (rows) => rows.length === eventsOfTask * taskIds.length && rows.every(({ status }) => status === 'delivered'),
    withinMs,
  );
const tasks = (count: number, make: () => Promise<string>) => Promise.all(Array.from({ length: count }, make));
/** Checks that every post arrived once, and those of a task in the order of its events. */
const inOrder = (sink: WebhookSink): void => {
  const ids = sink.received.map(({ headers }) => headers['webhook-id']);
  expect(new Set(ids).size).toBe(ids.length);
  const states = new Map<string, string[]>();
  for (const { body } of sink.received) {
    const { taskId, status } = body.statusUpdate ?? body.artifactUpdate;
    states.set(taskId, [...(states.get(taskId) ?? []), status?.state ?? 'artifact']);
  }
  for (const posted of states.values())
    expect(posted).toEqual(['TASK_STATE_WORKING', 'artifact', 'TASK_STATE_COMPLETED']);
};

describe('hosts that receive webhooks', () => {
  let gateway: TestGateway;
  let [slow, quick]: WebhookSink[] = [];
  let stranger: string;
  /** Two members of another org. */
  let [mallory, colleague]: string[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_WEBHOOK_MAX_PER_HOST: '3', METRICS_PORT: String(await freePort()) });
    await publish(gateway);
    stranger = await gateway.tokenOf('globex', 'gina', 'admin');
    await publish(gateway, { name: 'own' }, stranger);
    mallory = await gateway.tokenOf('acme', 'mallory', 'admin');
    colleague = await gateway.tokenOf('acme', 'adam', 'admin');
    await publish(gateway, { name: 'own' }, mallory);
  });
  beforeEach(async () => void ([slow, quick] = await Promise.all([startWebhookSink(), startWebhookSink()])));
  afterEach(async () => {
    jest.restoreAllMocks();
    await Promise.all([slow!.close(), quick!.close()]);
  });
  afterAll(() => gateway.close());

  /** Reads a counter; one that never counted is absent and reads 0. */
  const metric = async (series: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${gateway.gateway.metricsPort}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`${series} `));
    return Number(line?.slice(series.length + 1) ?? 0);
  };

  /** Moves the due time of deferred deliveries by an hour, so that only a wake-up can send them during a test. */
  const comesDueByItselfAnHourLater = (): void => {
    const { enter } = DeliveryAdmission.prototype;
    jest.spyOn(DeliveryAdmission.prototype, 'enter').mockImplementation(async function (
      this: DeliveryAdmission,
      visit,
    ) {
      const answer = await enter.call(this, visit);
      return answer.kind === 'deferred' ? { ...answer, inMs: answer.inMs + 3_600_000 } : answer;
    });
  };

  it('abuse 28: get a few posts at once over all tenants, the next at an end; others do not wait', async () => {
    comesDueByItselfAnHourLater();
    const release = slow!.hold();
    slow!.delay(150);
    const many = await Promise.all([
      tasks(9, () => send(gateway, slow!.url)),
      tasks(3, () => send(gateway, `${slow!.url}/other`, stranger)),
    ]);
    await allDelivered(gateway, [await send(gateway, quick!.url)]);
    await eventually(
      () => slow!.received.length,
      (count) => count >= 3,
    );
    expect(slow!.received).toHaveLength(3);
    release();
    const rows = await allDelivered(gateway, many.flat());
    expect(slow!.mostAtOnce()).toBe(3);
    expect(rows.every(({ attempts }) => attempts === 1)).toBe(true);
    inOrder(slow!);
    expect(await metric('rialto_webhooks_waiting')).toBe(0);
  });

  it('abuse 28: that are down get one post at a time; deferred ones count no attempt, and are sent later', async () => {
    const before = await metric('rialto_webhook_put_off_total{why="down"}');
    let ahead = 0;
    const elapsed = systemClock.elapsed.bind(systemClock);
    jest.spyOn(systemClock, 'elapsed').mockImplementation(() => elapsed() + ahead);
    slow!.script([503], true);
    const many = await tasks(30, () => send(gateway, slow!.url));
    const heads = () =>
      gateway.sql(
        `select attempts, extract(epoch from next_at - now())::float as wait
         from webhook_deliveries
         where task_id = any($1::uuid[]) and seq = 2 and status = 'pending'
           and lease_until is null and next_at > now()`,
        [many],
      );
    const waiting = await eventually(heads, ({ length }) => length === 30);
    const untried = waiting.filter(({ attempts }) => attempts === 0);
    expect(slow!.received.length).toBeGreaterThanOrEqual(10);
    expect(slow!.received.length).toBeLessThanOrEqual(13);
    expect(untried.length).toBe(30 - slow!.received.length);
    // Ten seconds, and a slot of 20 ms for each one before it.
    for (const { wait } of untried) expect(wait).toBeLessThan(11);
    expect(await metric('rialto_webhook_breakers_open')).toBe(1);
    // Deliveries that came while the host was only busy are first deferred for that reason, for ten seconds and more.
    await eventually(
      async () => (await metric('rialto_webhook_put_off_total{why="down"}')) - before,
      (putOff) => putOff >= untried.length,
    );
    await allDelivered(gateway, [await send(gateway, quick!.url)]);

    const posts = slow!.received.length;
    const due = () =>
      gateway.sql(
        `update webhook_deliveries set next_at = now() where id in (select id from webhook_deliveries
         where status = 'pending' and task_id = any($1::uuid[]) order by task_id, seq for update skip locked)`,
        [many],
      );
    ahead += 6_000;
    const release = slow!.hold();
    await due();
    await eventually(
      () => slow!.received.length,
      (count) => count > posts,
    );
    await due();
    await eventually(heads, ({ length }) => length === 29);
    expect(slow!.received.length).toBe(posts + 1);

    release();
    await eventually(heads, ({ length }) => length === 30);
    slow!.script([200], true);
    ahead += 3_600_000;
    await eventually(due, () => slow!.received.length >= posts + 1 + 90);
    const rows = await allDelivered(gateway, many);
    expect(rows.every(({ attempts }) => attempts <= 3)).toBe(true);
    expect(await metric('rialto_webhook_breakers_open')).toBe(0);
  });

  it.each<[string, Reply]>([
    ['hangs', 'hang'],
    ['breaks off', 'break off'],
    ['is overloaded', 503],
  ])(
    'abuse 36: a receiver that %s delays no other sender of its org, or of another, at its host',
    async (_how, reply) => {
      slow!.answerAt('/bad', reply);
      await tasks(20, () => send(gateway, `${slow!.url}/bad`, mallory));
      const bad = () => slow!.received.filter(({ path }) => path === '/bad').length;
      await eventually(bad, (count) => count >= (reply === 'hang' ? 2 : 10));
      comesDueByItselfAnHourLater();
      for (let round = 0; round < 3; round++) {
        const theirs = await Promise.all([
          send(gateway, `${slow!.url}/good`, colleague),
          send(gateway, `${slow!.url}/good`, stranger),
        ]);
        const rows = await allDelivered(gateway, theirs);
        expect(rows.every(({ attempts }) => attempts === 1)).toBe(true);
      }
    },
  );

  it('deliveries that wait for a slot are found by the next process after this one is gone', async () => {
    const first = await startTestGateway({ RIALTO_ROLE: 'api' });
    const begin = () => startTestGateway({ RIALTO_WEBHOOK_MAX_PER_HOST: '1' }, first);
    try {
      await publish(first);
      const worker = await begin();
      slow!.script(['hang'], true);
      const many = await tasks(6, () => send(first, slow!.url));
      await eventually(
        () => rowsOf(first, many),
        (rows) => rows.filter(({ wait, attempts }) => wait > 1 && attempts === 0).length >= 15,
      ).finally(() => worker.close());
      slow!.script([200], true);
      const next = await begin();
      await allDelivered(first, many).finally(() => next.close());
    } finally {
      await first.close();
    }
  });
});

describe('how receivers answer', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;

  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
  });
  beforeEach(async () => void (sink = await startWebhookSink()));
  afterEach(() => sink.close());
  afterAll(() => gateway.close());

  const firstTry = (taskId: string) =>
    eventually(
      () =>
        gateway.sql(
          `select d.id, a.status, a.error, d.status as state,
             extract(epoch from d.next_at - a.at)::float as wait, c.state as config, c.reason
           from webhook_deliveries d
           join webhook_attempts a on a.delivery_id = d.id and a.number = 1
           join push_configs c on c.task_id = d.task_id and c.id = d.config_id
           where d.task_id = $1 and d.seq = 2`,
          [taskId],
        ),
      ({ length }) => length === 1,
    );
  const headers = (retryAfter: string) => ({ 'retry-after': retryAfter });
  const again = { state: 'pending', config: 'failing', reason: null };

  it.each<[string, Reply, object, number, number]>([
    ['200 but the connection breaks', 'break off', { status: null, error: 'remote_transport', ...again }, 4, 6],
    [
      '301',
      { status: 301, headers: { location: 'http://127.0.0.1:9/' } },
      { status: 301, error: 'status_301', ...again },
      4,
      6,
    ],
    ['410', 410, { status: 410, error: 'status_410', state: 'dead', config: 'disabled', reason: 'gone' }, -1, 1],
    [
      '429 with Retry-After',
      { status: 429, headers: headers('9') },
      { status: 429, error: 'status_429', ...again },
      8.9,
      9.1,
    ],
    [
      '429 with a Retry-After of an hour',
      { status: 429, headers: headers('3600') },
      { status: 429, ...again },
      9.9,
      10.1,
    ],
    ['500', 500, { status: 500, error: 'status_500', ...again }, 4, 6],
    ['503', 503, { status: 503, error: 'status_503', ...again }, 4, 6],
  ])('F34: %s', async (_name, reply, expected, least, most) => {
    sink.script([reply, 200]);
    const taskId = await send(gateway, sink.url);
    const [row] = await firstTry(taskId);
    expect(row).toMatchObject(expected);
    expect(row.wait).toBeGreaterThan(least);
    expect(row.wait).toBeLessThan(most);
    if (row.state === 'dead') return;
    await hurry(gateway, taskId);
    await allDelivered(gateway, [taskId]);
    const ids = sink.received.map(({ headers: sent }) => sent['webhook-id']);
    expect(ids.slice(0, 2)).toEqual([row.id, row.id]);
    expect(sink.received[1]!.text).toBe(sink.received[0]!.text);
  });

  it('F34: a slow 200 is accepted, once', async () => {
    sink.delay(2_500);
    const taskId = await send(gateway, sink.url);
    const [first] = await firstTry(taskId);
    expect(first).toMatchObject({ status: 200, error: null, state: 'delivered', config: 'active' });
    sink.delay(0);
    await allDelivered(gateway, [taskId]);
    inOrder(sink);
  });

  it('F34: a receiver with an expired certificate accepts nothing', async () => {
    let requests = 0;
    const server = createTlsServer(expiredTls, (_request, response) => {
      requests++;
      response.end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const taskId = await send(gateway, `https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      const [row] = await firstTry(taskId);
      expect(row).toMatchObject({ status: null, error: 'remote_transport', ...again });
      expect(requests).toBe(0);
    } finally {
      server.close();
    }
  });
});
